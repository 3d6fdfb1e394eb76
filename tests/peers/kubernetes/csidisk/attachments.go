package main

import (
	"context"
	"fmt"
	"sync"
)

// attachments is who has which volume. Both verbs say whether they changed anything: who asks again, not having heard, changes nothing.
type attachments interface {
	// attach fails with an elsewhere where another node has the volume.
	attach(ctx context.Context, volume, node string) (bool, error)
	// Nobody is asked whether the node has unmounted it: neither does a cloud.
	detach(ctx context.Context, volume, node string) (bool, error)
}

// elsewhere is who has the volume that was asked for.
type elsewhere struct{ volume, node string }

func (e elsewhere) Error() string {
	return fmt.Sprintf("volume %s is attached to %s", e.volume, e.node)
}

// here is a disk array of one's own: what it knows lives as long as the driver.
type here struct {
	mu  sync.Mutex
	has map[string]string
}

func (h *here) attach(_ context.Context, volume, node string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if has := h.has[volume]; has != "" && has != node {
		return false, elsewhere{volume, has}
	}
	changed := h.has[volume] == ""
	h.has[volume] = node
	return changed, nil
}

func (h *here) detach(_ context.Context, volume, node string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has[volume] != node {
		return false, nil
	}
	delete(h.has, volume)
	return true, nil
}

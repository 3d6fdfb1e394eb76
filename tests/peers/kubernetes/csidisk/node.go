package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.id}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	volume := filepath.Join(d.volumes, filepath.Base(r.VolumeId))
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, status.Errorf(codes.Internal, "make %s: %v", r.TargetPath, err)
	}
	if isMounted(volume, r.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := syscall.Mount(volume, r.TargetPath, "", syscall.MS_BIND, ""); err != nil {
		return nil, status.Errorf(codes.Internal, "mount %s: %v", volume, err)
	}
	d.journal.note("mount", r.VolumeId, d.node)
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	volume := filepath.Join(d.volumes, filepath.Base(r.VolumeId))
	if isMounted(volume, r.TargetPath) {
		if err := syscall.Unmount(r.TargetPath, syscall.MNT_DETACH); err != nil {
			return nil, status.Errorf(codes.Internal, "unmount %s: %v", r.TargetPath, err)
		}
		d.journal.note("unmount", r.VolumeId, d.node)
	}
	// One that has something in it is not ours to remove: it may be the volume.
	if err := os.Remove(r.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, status.Errorf(codes.Internal, "remove %s: %v", r.TargetPath, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// isMounted says whether the target is the volume's folder itself.
func isMounted(volume, target string) bool {
	v, err := os.Stat(volume)
	if err != nil {
		return false
	}
	t, err := os.Stat(target)
	return err == nil && os.SameFile(v, t)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// cinder attaches through Nova, as the Cinder plugin does: a node is a server, a volume one of Cinder's, each by its id.
type cinder struct {
	AuthURL  string `json:"auth_url"`
	User     string `json:"user"`
	Password string `json:"password"`
	Project  string `json:"project"`
}

// look is how often Cinder is asked how far it is.
const look = 200 * time.Millisecond

func inCloud(file string) (*cinder, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &cinder{}
	return c, json.Unmarshal(text, c)
}

func (c *cinder) attach(ctx context.Context, volume, node string) (bool, error) {
	s, err := c.login(ctx)
	if err != nil {
		return false, err
	}
	servers, _, err := s.has(ctx, volume)
	if err != nil {
		return false, err
	}
	if len(servers) > 0 {
		if servers[0] == node {
			return false, nil
		}
		return false, elsewhere{volume, servers[0]}
	}
	ask := map[string]any{"volumeAttachment": map[string]string{"volumeId": volume}}
	if err := s.ask(ctx, http.MethodPost, s.nova+"/servers/"+node+"/os-volume_attachments", ask, nil); err != nil {
		return false, err
	}
	return true, s.until(ctx, volume, func(servers []string, status string) bool {
		return status == "in-use" && len(servers) == 1 && servers[0] == node
	})
}

func (c *cinder) detach(ctx context.Context, volume, node string) (bool, error) {
	s, err := c.login(ctx)
	if err != nil {
		return false, err
	}
	servers, status, err := s.has(ctx, volume)
	if err != nil {
		return false, err
	}
	if status == "available" || len(servers) == 0 || servers[0] != node {
		return false, nil
	}
	if status != "in-use" {
		return false, fmt.Errorf("volume %s is %s", volume, status)
	}
	if err := s.ask(ctx, http.MethodDelete, s.nova+"/servers/"+node+"/os-volume_attachments/"+volume, nil, nil); err != nil {
		return false, err
	}
	return true, s.until(ctx, volume, func(servers []string, status string) bool {
		return status == "available" && len(servers) == 0
	})
}

// session is a login, and where the services are by its catalogue.
type session struct{ token, nova, volumes string }

func (c *cinder) login(ctx context.Context) (*session, error) {
	domain := map[string]string{"id": "default"}
	user := map[string]any{"name": c.User, "password": c.Password, "domain": domain}
	ask := map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": user}},
		"scope":    map[string]any{"project": map[string]any{"name": c.Project, "domain": domain}},
	}}
	var told struct {
		Token struct {
			Catalog []struct {
				Type      string
				Endpoints []struct{ Interface, URL string }
			}
		}
	}
	s := &session{}
	if err := s.ask(ctx, http.MethodPost, c.AuthURL+"/auth/tokens", ask, &told); err != nil {
		return nil, err
	}
	for _, service := range told.Token.Catalog {
		for _, endpoint := range service.Endpoints {
			switch {
			case endpoint.Interface != "public":
			case service.Type == "compute":
				s.nova = endpoint.URL
			case service.Type == "block-storage":
				s.volumes = endpoint.URL
			}
		}
	}
	return s, nil
}

// has says which servers have a volume, and its status.
func (s *session) has(ctx context.Context, volume string) ([]string, string, error) {
	var told struct {
		Volume struct {
			Status      string
			Attachments []struct {
				Server string `json:"server_id"`
			}
		}
	}
	if err := s.ask(ctx, http.MethodGet, s.volumes+"/volumes/"+volume, nil, &told); err != nil {
		return nil, "", err
	}
	var servers []string
	for _, attachment := range told.Volume.Attachments {
		servers = append(servers, attachment.Server)
	}
	return servers, told.Volume.Status, nil
}

// until waits for as long as the attacher does.
func (s *session) until(ctx context.Context, volume string, is func([]string, string) bool) error {
	for {
		servers, status, err := s.has(ctx, volume)
		if err != nil {
			return err
		}
		if is(servers, status) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("volume %s is still %s, attached to %v", volume, status, servers)
		case <-time.After(look):
		}
	}
}

// ask sends a request, and reads its answer into told.
func (s *session) ask(ctx context.Context, method, url string, body, told any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return err
	}
	// Cinder refuses what says that it has content, and has none.
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", "csidisk")
	if s.token != "" {
		r.Header.Set("X-Auth-Token", s.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, said)
	}
	if s.token == "" {
		s.token = answer.Header.Get("X-Subject-Token")
	}
	if told == nil {
		return nil
	}
	return json.Unmarshal(said, told)
}

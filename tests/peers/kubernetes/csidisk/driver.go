package main

import (
	"context"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const name = "disk.test.picket.dev"

// driver is the controller of all volumes, or the plugin of one node: which of both its flags decide.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	node     string
	volumes  string
	journal  journal
	mu       sync.Mutex
	attached map[string]string
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	controller := &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: service}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{controller}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	publish := &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}
	attaches := &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: publish}}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{attaches}}, nil
}

// A volume is attached to one node at a time, and who asks for it elsewhere is refused, as a cloud's disk would.
func (d *driver) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch n := d.attached[r.VolumeId]; n {
	case r.NodeId: // The attacher asks again where it did not hear the answer.
		return &csi.ControllerPublishVolumeResponse{}, nil
	case "":
	default:
		d.journal.note("refused", r.VolumeId, r.NodeId)
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s", r.VolumeId, n)
	}
	d.attached[r.VolumeId] = r.NodeId
	d.journal.note("attach", r.VolumeId, r.NodeId)
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// Nobody is asked whether the node has unmounted it: neither would a cloud.
func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attached[r.VolumeId] == r.NodeId {
		delete(d.attached, r.VolumeId)
		d.journal.note("detach", r.VolumeId, r.NodeId)
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

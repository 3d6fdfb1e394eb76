package main

import (
	"context"
	"errors"

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
	id       string
	volumes  string
	journal  journal
	attached attachments
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
func (d *driver) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	changed, err := d.attached.attach(ctx, r.VolumeId, r.NodeId)
	if changed {
		d.journal.note("attach", r.VolumeId, r.NodeId)
	}
	var other elsewhere
	if errors.As(err, &other) {
		d.journal.note("refused", r.VolumeId, r.NodeId)
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (d *driver) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	changed, err := d.attached.detach(ctx, r.VolumeId, r.NodeId)
	if changed {
		d.journal.note("detach", r.VolumeId, r.NodeId)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

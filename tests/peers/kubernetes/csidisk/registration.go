package main

import (
	"context"
	"log"
	"os"

	api "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration answers the kubelet what a node-driver-registrar would.
type registration struct {
	api.UnimplementedRegistrationServer
	socket string
}

func (r *registration) GetInfo(context.Context, *api.InfoRequest) (*api.PluginInfo, error) {
	return &api.PluginInfo{Type: api.CSIPlugin, Name: name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (r *registration) NotifyRegistrationStatus(_ context.Context, s *api.RegistrationStatus) (*api.RegistrationStatusResponse, error) {
	log.Println("registered:", s.PluginRegistered, s.Error)
	if !s.PluginRegistered {
		// As node-driver-registrar does: the kubelet asks nobody twice, but one that is started again.
		os.Exit(1)
	}
	return &api.RegistrationStatusResponse{}, nil
}

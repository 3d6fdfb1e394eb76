// csidisk is a CSI driver for tests: a volume is a folder that all machines reach, as a SAN would be.
// It attaches a volume to one node at a time, and notes what it did and when; with -openstack Nova does, and the folder has no more
// than what is written.
// Nothing but the attachment keeps two machines from writing: what is written there shows each overlap.
package main

import (
	"cmp"
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	socket := flag.String("socket", "", "where it serves")
	volumes := flag.String("volumes", "", "the folder of the volumes")
	noted := flag.String("journal", "", "the file in which all that it does is noted")
	node := flag.String("node", "", "the node whose plugin it is; empty: the controller of all")
	id := flag.String("id", "", "what the controller knows that node by; empty: its name")
	cloud := flag.String("openstack", "", "a login of an OpenStack, whose servers the nodes are and whose volumes are attached")
	register := flag.String("register", "", "the kubelet's plugins_registry, for a node's plugin")
	flag.Parse()

	d := &driver{node: *node, id: cmp.Or(*id, *node), volumes: *volumes, journal: journal(*noted)}
	d.attached = &here{has: map[string]string{}}
	if *cloud != "" {
		var err error
		if d.attached, err = inCloud(*cloud); err != nil {
			log.Fatal(err)
		}
	}
	serving := listen(*socket)
	if *register != "" {
		announced := grpc.NewServer()
		api.RegisterRegistrationServer(announced, &registration{socket: *socket})
		at := listen(filepath.Join(*register, name+"-reg.sock"))
		go func() { log.Fatal(announced.Serve(at)) }()
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	if *node != "" {
		csi.RegisterNodeServer(server, d)
	}
	log.Fatal(server.Serve(serving))
}

// listen takes a socket's place, also of one that an earlier process left behind.
func listen(socket string) net.Listener {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	return l
}

func logged(ctx context.Context, asked any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, asked)
	log.Println(info.FullMethod, asked, err)
	return answer, err
}

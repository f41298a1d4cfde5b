package xdstest

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"cellserver/internal/test/certtest"
	"cellserver/internal/test/processtest"
	"cellserver/lab/internal/built"
)

// pod is a container of a Deployment, as a kubelet starts it but on free ports of loopback. Its root has the
// program and what is mounted. As root, the test makes that the process's root, and the container's user its
// user, who can write to nothing but claimed volumes; else the paths lead to it.
type pod struct {
	container corev1.Container
	spec      corev1.PodSpec
	root      string
	ca        *certtest.CA // of the files in /certs, nil without them
}

// podPorts are those of the containers, by what is served there.
var podPorts = map[string]string{"8080": "health", "8081": "gRPC", "19001": "Prometheus"}

// readPod reads the Deployment in a file.
func readPod(t *testing.T, file string) *pod {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &pod{spec: d.Spec.Template.Spec, container: d.Spec.Template.Spec.Containers[0]}
}

// value returns that of an environment variable; one from elsewhere is the pod's name, or a Secret's.
func (p *pod) value(name string) string {
	for _, e := range slices.Backward(p.container.Env) {
		if e.Name == name && e.ValueFrom != nil {
			return "pod-0"
		}
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// user returns that of the container.
func (p *pod) user() uint32 {
	if c := p.container.SecurityContext; c != nil && c.RunAsUser != nil {
		return uint32(*c.RunAsUser) //nolint:gosec // a user's number
	}
	return uint32(*p.spec.SecurityContext.RunAsUser) //nolint:gosec // a user's number
}

func isRoot() bool { return os.Getuid() == 0 }

// path returns a path in the container as the process sees it.
func (p *pod) path(name string) string {
	if isRoot() {
		return name
	}
	return filepath.Join(p.root, name)
}

// fill makes the root of the container, which nobody writes to but in claimed volumes.
func (p *pod) fill(t *testing.T) {
	t.Helper()
	p.root = filepath.Join(t.TempDir(), "root")
	if err := os.MkdirAll(filepath.Join(p.root, "bin"), 0o755); err != nil { //nolint:gosec // others start it
		t.Fatal(err)
	}
	if err := os.Link(built.Server(t), filepath.Join(p.root, "bin/ratelimit")); err != nil {
		t.Fatal(err)
	}
	var claimed []string
	for _, m := range p.container.VolumeMounts {
		dir := filepath.Join(p.root, m.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // others read it
			t.Fatal(err)
		}
		volume := p.spec.Volumes[slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
		if volume.PersistentVolumeClaim != nil {
			claimed = append(claimed, dir)
		}
	}
	if p.value("GRPC_SERVER_USE_TLS") == "true" {
		p.ca = certtest.NewCA(t)
		cert, key := p.ca.Issue(t, "envoy-ratelimit")
		for name, text := range map[string][]byte{"ca.crt": p.ca.PEM, "tls.crt": cert, "tls.key": key} {
			file := filepath.Join(p.root, "certs", name)
			certtest.Write(t, file, text)
			if err := os.Chmod(file, 0o444); err != nil { //nolint:gosec // as a Secret's
				t.Fatal(err)
			}
		}
	}
	p.protect(t, claimed)
}

// protect takes the right to write from all directories but the claimed ones, which are the user's.
func (p *pod) protect(t *testing.T, claimed []string) {
	t.Helper()
	chmod := func(mode os.FileMode) error {
		return filepath.WalkDir(p.root, func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil || !d.IsDir():
				return err
			case !slices.Contains(claimed, path):
				return os.Chmod(path, mode)
			case isRoot():
				return os.Chown(path, int(p.user()), int(p.user()))
			}
			return nil
		})
	}
	if err := chmod(0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chmod(0o700) })
}

// environment returns the container's, with other addresses and, where the root is not the container's,
// paths.
func (p *pod) environment(xds string, d doors) []string {
	env := []string{"PATH=/bin", "TMPDIR=/"} // the image's
	for _, e := range p.container.Env {
		value := p.value(e.Name)
		for _, m := range p.container.VolumeMounts {
			if value == m.MountPath || strings.HasPrefix(value, m.MountPath+"/") {
				value = p.path(value)
			}
		}
		env = append(env, e.Name+"="+value)
	}
	return slices.Concat(env, d.environment(), []string{"CONFIG_GRPC_XDS_SERVER_URL=" + xds})
}

// start starts the container's command. Calls are made as Envoy's, which shows a certificate and knows the
// authority's.
func (p *pod) start(t *testing.T, xds string) *service {
	t.Helper()
	d := freeDoors(t)
	cmd := processtest.Command(t, p.path(p.container.Command[0]), slices.Concat(p.container.Command[1:], p.container.Args)...)
	cmd.Env, cmd.Dir = p.environment(xds, d), p.path("/")
	if isRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root, Credential: &syscall.Credential{Uid: p.user(), Gid: p.user()}}
	}
	var security *tls.Config
	if p.ca != nil {
		security = &tls.Config{RootCAs: p.ca.Pool, ServerName: "localhost", Certificates: []tls.Certificate{p.ca.Pair(t, "envoy")}}
	}
	return serve(t, processtest.Start(t, cmd), d, security)
}

// passes returns whether a probe does.
func (p *pod) passes(t *testing.T, s *service, probe *corev1.Probe) bool {
	t.Helper()
	port := probe.HTTPGet.Port.String()
	for _, named := range p.container.Ports {
		if named.Name == port {
			port = strconv.Itoa(int(named.ContainerPort))
		}
	}
	if podPorts[port] == "" {
		t.Fatalf("a probe asks at the port %s", port)
	}
	answer, _ := s.Get(t, podPorts[port], probe.HTTPGet.Path)
	return answer >= http.StatusOK && answer < http.StatusBadRequest
}

// controlPlane returns one that shows a certificate and asks for one where the pod has them.
func (p *pod) controlPlane(t *testing.T) *controlPlane {
	t.Helper()
	if p.value("CONFIG_GRPC_XDS_SERVER_USE_TLS") != "true" {
		return startControlPlane(t)
	}
	return startControlPlane(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{p.ca.Pair(t, "envoy-gateway")}, ClientCAs: p.ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
}

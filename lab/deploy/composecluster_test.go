package deploytest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

func loadComposeCluster(t *testing.T) *types.Project {
	t.Helper()
	return loadCompose(t, "cluster.yaml")
}

func TestComposeClusterIsCareful(t *testing.T) {
	project := loadComposeCluster(t)
	checkServices(t, project)
	addresses, volumes := map[string]bool{}, map[string]bool{}
	for i := range 6 {
		s := project.Services["valkey-"+strconv.Itoa(i+1)]
		addresses[s.Networks["cluster"].Ipv4Address] = true
		for _, v := range s.Volumes {
			if v.Target == "/data" && v.Type == types.VolumeTypeVolume {
				volumes[v.Source] = true
			}
		}
	}
	_, subnet, err := net.ParseCIDR(project.Networks["cluster"].Ipam.Config[0].Subnet)
	if err != nil || len(addresses) != 6 || len(volumes) != 6 {
		t.Fatalf("nodes share addresses %v or volumes %v (%v)", addresses, volumes, err)
	}
	for a := range addresses {
		if !subnet.Contains(net.ParseIP(a)) {
			t.Errorf("%s is not in %s", a, subnet)
		}
	}
	if s := project.Services["cellserver"]; s.GetScale() != 3 || s.DependsOn["valkey-init"].Condition != types.ServiceConditionCompletedSuccessfully {
		t.Errorf("%d cellservers, which start when %v", s.GetScale(), s.DependsOn)
	}
}

// TestComposeClusterRuns runs the nodes, what makes a cluster of them, and three cellservers in front of it.
func TestComposeClusterRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	t.Parallel()
	project := loadComposeCluster(t)
	f := newFleet(t)
	password := write(t, t.TempDir(), "valkey", fleetPassword)
	conf := read(t, composeDir+"/valkey.conf")
	start := func(i int) {
		service := project.Services["valkey-"+strconv.Itoa(i)]
		f.places = strings.NewReplacer("/etc/valkey.conf", f.config(t, i, conf), "/run/secrets/valkey", password)
		f.start(t, f.command(t, i, slices.Clone(service.Entrypoint)...))
	}
	for i := 1; i <= 6; i++ {
		start(i)
	}
	for i := 1; i <= 6; i++ {
		c := f.client(t, i)
		f.nodes[0].Eventually(t, "be ready", func() bool { return c.Ping(t.Context()).Err() == nil })
	}
	f.places = strings.NewReplacer("172.31.80.1", f.network, "6379", f.port, "/run/secrets/valkey", password)
	for range 2 { // the second finds a cluster
		if out, err := f.command(t, 0, slices.Clone(project.Services["valkey-init"].Entrypoint)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		f.checkCluster(t, 1)
	}
	f.checkSettings(t, 1)
	env := composeEnvironment(t, project.Services["cellserver"])
	names := strings.NewReplacer("//valkey-", "//"+f.network, ",valkey-", ","+f.network, "6379", f.port)
	for i := range env {
		env[i] = names.Replace(env[i])
	}
	checkFleetOfServers(t, env, map[string]string{"/run/secrets/requirepass": serverPassword, "/run/secrets/valkey": fleetPassword})
}

// composeEnvironment returns a container's environment.
func composeEnvironment(t *testing.T, s types.ServiceConfig) (env []string) {
	t.Helper()
	for name, value := range s.Environment {
		if value == nil {
			t.Fatalf("%s has no value", name)
		}
		env = append(env, name+"="+*value)
	}
	return env
}

package deploytest

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"cellserver/lab/internal/built"
)

const composePair = "pair.yaml"

func TestComposePairIsCareful(t *testing.T) {
	project := loadCompose(t, composePair)
	if len(project.Services) != 5 {
		t.Errorf("%d services, want five", len(project.Services))
	}
	checkServices(t, project)
	addresses, volumes := map[string]bool{}, map[string]bool{}
	_, subnet, err := net.ParseCIDR(project.Networks["pair"].Ipam.Config[0].Subnet)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		address := s.Networks["pair"].Ipv4Address
		if addresses[address] = true; !subnet.Contains(net.ParseIP(address)) {
			t.Errorf("%s is not in %s", address, subnet)
		}
		dir := "/data"
		if strings.HasPrefix(name, "cellserver-") {
			dir = "/var/lib/cellserver"
			checkVolume(t, s, dir)
			checkImage(t, built.Server(t), s.Image)
		}
		for _, v := range s.Volumes {
			if v.Target == dir && v.Type == types.VolumeTypeVolume {
				volumes[v.Source] = true
			}
		}
	}
	if len(addresses) != 5 || len(volumes) != 5 {
		t.Errorf("services share addresses %v or volumes %v", addresses, volumes)
	}
}

// TestComposePairSecrets runs the commands at the top of the file, without the owners of the files.
func TestComposePairSecrets(t *testing.T) {
	t.Parallel()
	text := read(t, composeDir+"/"+composePair)
	_, commands, _ := strings.Cut(text, "#   install -d")
	commands, _, ok := strings.Cut(commands, "#   docker compose")
	if !ok {
		t.Fatal("no commands")
	}
	commands = strings.ReplaceAll("#   install -d"+commands, "\n#   ", "\n")
	commands = strings.NewReplacer("#   ", "", "sudo ", "", " -o 65532", "", " -o 999", "", " -g 999", "").Replace(commands)
	dir := t.TempDir()
	run(t, dir, "sh", "-ec", commands)
	for name, secret := range loadCompose(t, composePair).Secrets {
		if b, err := os.ReadFile(filepath.Join(dir, "secrets", filepath.Base(secret.File))); err != nil || len(b) == 0 {
			t.Errorf("no command makes %s: %v", name, err)
		}
	}
	users, err := os.ReadFile(filepath.Join(dir, "secrets/users.acl")) //nolint:gosec // in the test's directory
	if err != nil {
		t.Fatal(err)
	}
	checkUsers(t, string(users))
}

// rules are the lines of the users by whom servers and Sentinels log in, as in the example of a secret.
func rules(t *testing.T) (lines string) {
	t.Helper()
	_, lines, ok := strings.Cut(read(t, pairDir+"/examples/secret.yaml"), "users.acl: |\n")
	if !ok {
		t.Fatal("no users")
	}
	return strings.NewReplacer(">changeme ", ">"+replicaPassword+" ", ">change-me ", ">"+sentinelPassword+" ", "    user", "user").Replace(lines)
}

// checkUsers expects the users of an aclfile to be those of the example, with passwords.
func checkUsers(t *testing.T, users string) {
	t.Helper()
	password := regexp.MustCompile(`>\S+ `)
	if got, want := password.ReplaceAllString(users, "> "), password.ReplaceAllString(rules(t), "> "); got != want {
		t.Errorf("the users are\n%s\nwant\n%s", got, want)
	}
}

// TestComposePairRuns runs the servers and the Sentinels.
func TestComposePairRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for failovers")
	}
	t.Parallel()
	project := loadCompose(t, composePair)
	p := newPair(t, rules(t))
	p.places = append(p.places, "172.31.81.", p.network)
	p.runs = func(name string) container {
		s := project.Services[strings.NewReplacer("0", "1", "1", "2", "2", "3").Replace(name)] // they count from one
		c := container{env: map[string]string{}, places: []string{"/run/secrets/", p.dir + "/", "/var/lib/cellserver", p.data(t, name)}}
		for variable, value := range s.Environment {
			c.env[variable] = *value
		}
		if strings.HasPrefix(name, "sentinel-") {
			c.places = append(c.places, "/data", p.data(t, name))
			script := strings.NewReplacer(append(c.places, p.places...)...).Replace(read(t, composeDir+"/sentinel.sh"))
			c.places = append(c.places, "/etc/sentinel.sh", write(t, p.data(t, name), "sentinel.sh", script))
			c.command = s.Entrypoint
		}
		return c
	}
	p.check(t, func(leader int) { p.failover(t, leader) })
}

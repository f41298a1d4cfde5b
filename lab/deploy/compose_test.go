package deploytest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"cellserver/lab/internal/built"
)

const composeDir = "deploy/compose"

// loadCompose loads a project as docker compose does.
func loadCompose(t *testing.T, file string) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, composeDir))
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, file)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestComposeIsCareful(t *testing.T) {
	project := loadCompose(t, "compose.yaml")
	if len(project.Services) != 3 {
		t.Errorf("%d services, want three", len(project.Services))
	}
	checkServices(t, project)
}

// checkServices expects pinned versions, health checks, no privileges, and only local ports.
func checkServices(t *testing.T, project *types.Project) {
	t.Helper()
	pinned := regexp.MustCompile(`^[\w./-]+:v?\d+\.\d+\.\d+$`)
	for name, s := range project.Services {
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
		once := s.Restart == types.RestartPolicyOnFailure
		if once && len(s.Ports) > 0 {
			t.Errorf("%s ends, but serves", name)
		}
		if !once && (s.HealthCheck == nil || len(s.HealthCheck.Test) == 0 || s.HealthCheck.Disable) {
			t.Errorf("%s has no health check", name)
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || s.Privileged || s.Restart != "unless-stopped" && !once {
			t.Errorf("%s has more privileges than it needs", name)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to other hosts", name, p.Published)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: %s is missing or can be written: %v", name, v.Source, err)
			}
		}
		for _, secret := range s.Secrets {
			if project.Secrets[secret.Source].File == "" {
				t.Errorf("%s: the secret %s is not in a file", name, secret.Source)
			}
		}
	}
}

func TestComposeStartsThisServer(t *testing.T) {
	project := loadCompose(t, "compose.yaml")
	s := project.Services["cellserver"]
	if source, err := filepath.Abs(root); err != nil || filepath.Clean(s.Build.Context) != source {
		t.Errorf("it builds %s, want %s (%v)", s.Build.Context, source, err)
	}
	binary := built.Server(t)
	checkImage(t, binary, s.Image)
	help := run(t, "", binary, "--help")
	for name, value := range s.Environment {
		if !isFlagVariable(help, name) {
			t.Errorf("%s is not the variable of a flag", name)
		}
		if name == "CELLSERVER_DATA_DIR" {
			checkVolume(t, s, *value)
		}
		if name == "CELLSERVER_REQUIREPASS_FILE" && *value != "/run/secrets/"+s.Secrets[0].Source {
			t.Errorf("the password is not at %s", *value)
		}
	}
}

// checkVolume expects a directory to be a named volume, which takes its owner from the image.
func checkVolume(t *testing.T, s types.ServiceConfig, dir string) {
	t.Helper()
	named := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Source != "" && v.Target == dir && !v.ReadOnly
	})
	if !named {
		t.Errorf("%s is on no volume: %+v", dir, s.Volumes)
	}
	image := read(t, "Dockerfile")
	user := regexp.MustCompile(`(?m)^USER (\S+)$`).FindStringSubmatch(image)
	if user == nil || !strings.Contains(image, "\nCOPY --from=build --chown="+user[1]+" /data "+dir+"\n") {
		t.Errorf("%s does not belong to the user %v", dir, user)
	}
}

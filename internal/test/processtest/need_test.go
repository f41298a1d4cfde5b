package processtest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNeed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "skipped")
	t.Setenv(verifyEnv, "")
	t.Setenv(skippedEnv, list)
	t.Setenv("PATH", t.TempDir())
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nginx\n", "nginx\nnginx\n"} {
		skipped := false
		t.Run("without nginx", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			if path := Need(t, own); path != own {
				t.Errorf("found %s, want %s", path, own)
			}
			Need(t, own, "nginx", "haproxy")
		})
		if got, err := os.ReadFile(list); !skipped || string(got) != want || err != nil {
			t.Errorf("skipped %v, listed %q, %v", skipped, got, err)
		}
	}
}

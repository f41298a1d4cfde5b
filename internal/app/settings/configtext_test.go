package settings

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/pflag"
)

// TestExampleConfig: deploy/cellserver.yaml is the output of config example, changes nothing, and has every
// setting's default.
func TestExampleConfig(t *testing.T) {
	const path = "../../../deploy/cellserver.yaml"
	want := Example()
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // it is for all to read
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("%s is not what cellserver config example writes: UPDATE_DOCS=1 go test ./internal/app/settings -run TestExampleConfig", path)
	}
	if c, err := parseConfig(path, text); err != nil || len(c.entries) != 0 {
		t.Errorf("it sets %v, %v", c.entries, err)
	}
	all := regexp.MustCompile(`(?m)^#([a-z0-9-]+: )`).ReplaceAll(text, []byte("$1"))
	c, err := parseConfig(path, all)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{}
	fs := o.FlagSet(o.FlagGroups())
	from := Origins{}
	if wrong := c.set(fs, from); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if IsSetting(f) && f.Name != "config" && (from[f.Name] == "" || f.Value.String() != f.DefValue) {
			t.Errorf("--%s: %q at %q, want the default %q", f.Name, f.Value, from[f.Name], f.DefValue)
		}
	})
	o.Flags = fs
	if wrong := o.check(); len(wrong) > 0 {
		t.Errorf("the defaults, given all: %v", wrong)
	}
}

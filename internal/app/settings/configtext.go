package settings

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

// Shown is a setting as it is shown.
type Shown struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`  // as a flag takes it; nil for a secret
	Source string  `json:"source"` // a flag, a variable, a line of the config file, or default

	flag *pflag.Flag
}

// Shown returns all settings with their origins.
func (o *Options) Shown(groups []FlagGroup) (all []Shown) {
	for _, g := range groups {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if !IsSetting(f) || f.Name == "config" {
				return
			}
			s := Shown{Name: f.Name, Source: "default", flag: f}
			if from := o.From[f.Name]; from != "" {
				s.Source = from
			}
			if value := f.Value.String(); !hasSecret(f.Name, value) {
				s.Value = &value
			}
			all = append(all, s)
		})
	}
	return all
}

// WriteShown writes settings as a config file.
func WriteShown(out io.Writer, all []Shown) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range all {
		line := "#" + s.Name + ": (not shown)"
		if s.Value != nil {
			line = s.Name + ": " + yamlValue(s.flag, *s.Value)
		}
		_, _ = fmt.Fprintf(w, "%s\t# %s\n", line, s.Source)
	}
	return w.Flush()
}

var plainValue = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._/%|-]*(:[0-9]+)?$`)

func yamlValue(f *pflag.Flag, text string) string {
	if _, ok := f.Value.(*flagvalue.List); ok {
		return "[" + strings.ReplaceAll(text, ",", ", ") + "]"
	}
	if plainValue.MatchString(text) && !strings.EqualFold(text, "null") {
		return text
	}
	quoted, _ := json.Marshal(text) // JSON is YAML
	return string(quoted)
}

const exampleHead = `# The settings of cellserver, each with its default. To change one, remove the # in front of its name.
#
# A flag (--maxclients 500) overrides an environment variable (CELLSERVER_MAXCLIENTS=500), and a variable this file.
# cellserver config check --config FILE checks the file, and cellserver config show --config FILE shows each setting and its source.
# A time is 30s, 1m30s or 500ms, or seconds: 30 or 0.5; lua-time-limit and store-timeout require a unit.
# SIGHUP makes a server read it again and apply what can change at run time; the log names changes that require a restart.
`

const exampleWidth = 120

// Example returns a config file that changes nothing.
func Example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	for _, g := range (&Options{}).FlagGroups() {
		fmt.Fprintf(&b, "\n# --- %s ---\n", g.Title)
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if !IsSetting(f) || f.Name == "config" {
				return
			}
			_, text := pflag.UnquoteUsage(f)
			for line := range strings.Lines(usage.Wrap(text, exampleWidth-2)) {
				b.WriteString("\n# " + strings.TrimRight(line, "\n"))
			}
			fmt.Fprintf(&b, "\n#%s: %s\n", f.Name, yamlValue(f, f.DefValue))
		})
	}
	return b.String()
}

package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

// Problems are all mistakes found in the settings.
type Problems []error

// Error returns one line: the first mistake and the number of others.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	return fmt.Sprintf("%v (and %d more mistakes; cellserver config check with the same flags lists them)", p[0], len(p)-1)
}

// Err returns nil for no problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Origins names the source of each setting's value; defaults are absent.
type Origins map[string]string

// of names the flag, variable or line that sets a value.
func (from Origins) of(name string) string {
	switch by := from[name]; by {
	case "--" + name, EnvName(name):
		return by
	case "":
		return "--" + name
	default:
		return by + ": " + name
	}
}

// SetRest sets flags that the command line leaves out from the environment, and from the file of --config. It
// returns that file, with its mistakes; nil if none is named.
func SetRest(fs *pflag.FlagSet, getenv func(string) (string, bool)) (Origins, *ConfigFile, Problems) {
	from := Origins{}
	fs.Visit(func(f *pflag.Flag) { from[f.Name] = "--" + f.Name })
	wrong := setFromEnvironment(fs, from, getenv)
	path, err := fs.GetString("config")
	if err != nil || path == "" { // a command without --config
		return from, nil, wrong
	}
	file, err := readConfig(path)
	if err != nil {
		file.Wrong = SplitProblems(err)
	}
	file.Wrong = append(file.Wrong, file.set(fs, from)...)
	return from, file, wrong
}

// removedVariables refuses settings of earlier versions, without one of which a server might be open.
func removedVariables(getenv func(string) (string, bool)) (wrong Problems) {
	for _, name := range slices.Sorted(maps.Keys(usage.Removed())) {
		if value, _ := getenv(EnvName(name)); value != "" {
			wrong = append(wrong, errors.New("unknown setting "+EnvName(name)+"; "+usage.Hint(name, nil, nil, "")))
		}
	}
	return wrong
}

func setFromEnvironment(fs *pflag.FlagSet, from Origins, getenv func(string) (string, bool)) (wrong Problems) {
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := getenv(EnvName(f.Name))
		if !ok || from[f.Name] != "" || !IsSetting(f) {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			wrong = append(wrong, flagvalue.Describe(EnvName(f.Name), value, err))
			return
		}
		from[f.Name] = EnvName(f.Name)
	})
	return wrong
}

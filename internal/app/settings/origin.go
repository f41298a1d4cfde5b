package settings

import (
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// Problems are mistakes in what was set, which can be corrected at once.
type Problems []error

// Error is one line, as all mistakes are.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	return fmt.Sprintf("%v (and %d more mistakes; cellserver config check with the same flags lists them)", p[0], len(p)-1)
}

// Err is nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Origins say where each setting has its value from; what is not in there has its default.
type Origins map[string]string

// of says what has set a setting: a flag, a variable, or a line of the file.
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

// SetRest takes settings that the command line does not set from the environment, and from the file that
// --config or its variable names. It returns that file, which says itself what is wrong with it; nil if none
// is named.
func SetRest(fs *pflag.FlagSet, getenv func(string) (string, bool)) (Origins, *ConfigFile, Problems) {
	from := Origins{}
	fs.Visit(func(f *pflag.Flag) { from[f.Name] = "--" + f.Name })
	wrong := setFromEnvironment(fs, from, getenv)
	path, err := fs.GetString("config")
	if err != nil || path == "" { // a command without the flag
		return from, nil, wrong
	}
	file, err := readConfig(path)
	if err != nil {
		file.Wrong = SplitProblems(err)
	}
	file.Wrong = append(file.Wrong, file.set(fs, from)...)
	return from, file, wrong
}

// setFromEnvironment takes settings from the environment that the command line does not set.
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

package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// problems are mistakes in what was set, which can be corrected at once.
type problems []error

// Error is one line, as all mistakes are.
func (p problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	return fmt.Sprintf("%v (and %d more mistakes; cellserver config check with the same flags lists them)", p[0], len(p)-1)
}

// err is nil if there are none.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// origins say where each setting has its value from; what is not in there has its default.
type origins map[string]string

// of says what has set a setting: a flag, a variable, or a line of the file.
func (from origins) of(name string) string {
	switch by := from[name]; by {
	case "--" + name, envName(name):
		return by
	case "":
		return "--" + name
	default:
		return by + ": " + name
	}
}

// setRest takes settings that the command line does not set from the environment, and from the file that --config or its
// variable names. It returns that file, which says itself what is wrong with it; nil if none is named.
func setRest(fs *pflag.FlagSet, getenv func(string) (string, bool)) (origins, *configFile, problems) {
	from := origins{}
	fs.Visit(func(f *pflag.Flag) { from[f.Name] = "--" + f.Name })
	wrong := setFromEnvironment(fs, from, getenv)
	path, err := fs.GetString("config")
	if err != nil || path == "" { // a command without the flag
		return from, nil, wrong
	}
	file, err := readConfig(path)
	if err != nil {
		file.wrong = splitProblems(err)
	}
	file.wrong = append(file.wrong, file.set(fs, from)...)
	return from, file, wrong
}

// setFromEnvironment takes settings from the environment that the command line does not set.
func setFromEnvironment(fs *pflag.FlagSet, from origins, getenv func(string) (string, bool)) (wrong problems) {
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := getenv(envName(f.Name))
		if !ok || from[f.Name] != "" || !isSetting(f) {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			wrong = append(wrong, flagvalue.Describe(envName(f.Name), value, err))
			return
		}
		from[f.Name] = envName(f.Name)
	})
	return wrong
}

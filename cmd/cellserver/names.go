package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// settingNames are the names of the server's settings.
func settingNames() (names []string) {
	for _, g := range (&options{}).flagGroups() {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if isSetting(f) {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// isSetting tells flags that set something from those that ask for something else.
func isSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

// otherNames are those that Redis and its tools have for settings that are near none of ours.
func otherNames() map[string]string {
	return map[string]string{
		"port": "addr", "p": "addr", "bind": "addr", "host": "addr", "listen": "addr",
		"tls-port": "tls-addr", "tls-ca-cert-file": "tls-client-ca",
		"dir": "data-dir", "appendonly": "data-dir", "save": "data-dir", "appendfsync": "fsync-interval",
		"c": "config",
	}
}

func itself(name string) string { return name }

// hint says which of names was meant by one that is none of them, as show writes it; otherwise is for none.
func hint(name string, names []string, show func(name string) string, otherwise string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if meant := otherNames()[name]; slices.Contains(names, meant) {
		return "use " + show(meant)
	}
	if nearest := flagvalue.Nearest(name, names); nearest != "" {
		return "did you mean " + show(nearest) + "?"
	}
	return otherwise
}

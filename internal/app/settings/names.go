package main

import (
	"github.com/spf13/pflag"
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

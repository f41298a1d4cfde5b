package settings

import (
	"github.com/spf13/pflag"
)

// settingNames are the names of the server's settings.
func settingNames() (names []string) {
	for _, g := range (&Options{}).FlagGroups() {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if IsSetting(f) {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// IsSetting tells flags that set something from those that ask for something else.
func IsSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

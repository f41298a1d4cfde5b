package settings

import (
	"github.com/spf13/pflag"
)

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

// IsSetting reports whether a flag sets a value, unlike --help and --version.
func IsSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

package main

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/flagvalue"
)

// warnOfUnknownVariables warns of the variables that look like settings and are none, as a misspelt password is. It never
// logs their values, which may be secrets.
func warnOfUnknownVariables(environ []string, log *slog.Logger) {
	var settings []string
	for _, name := range settingNames() {
		settings = append(settings, envName(name))
	}
	services := regexp.MustCompile(serviceVariables)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(settings, name) || services.MatchString(name) ||
			strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") { // which a service's has, but not who imagines a setting
			continue
		}
		hint := "see cellserver --help"
		if nearest := nearestVariable(name, settings); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		log.Warn(name + " is no setting of the server and has no effect; " + hint)
	}
}

// serviceVariables matches what Kubernetes sets for services that are named cellserver or begin so; _PORT is apart.
const serviceVariables = `^CELLSERVER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// nearestVariable is flagvalue.Nearest without the beginning that all variables have.
func nearestVariable(name string, names []string) string {
	bare := make([]string, len(names))
	for i, other := range names {
		bare[i] = strings.TrimPrefix(other, envPrefix)
	}
	if nearest := flagvalue.Nearest(strings.TrimPrefix(name, envPrefix), bare); nearest != "" {
		return envPrefix + nearest
	}
	return ""
}

const envPrefix = "CELLSERVER_"

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// isSetting tells flags that set something from those that ask for something else.
func isSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

package settings

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"cellserver/internal/app/usage"
)

// WarnOfUnknownVariables warns of the variables that look like settings and are none, as a misspelt password
// is. It never logs their values, which may be secrets.
func WarnOfUnknownVariables(environ []string, log *slog.Logger) {
	names := settingNames()
	isVariable := func(variable string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return EnvName(name) == variable })
	}
	services := regexp.MustCompile(serviceVariables)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvPrefix) || isVariable(name) || services.MatchString(name) ||
			strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") { // which a service's has, but not who imagines a setting
			continue
		}
		log.Warn(name + " is no setting of the server and has no effect; " +
			usage.Hint(strings.TrimPrefix(name, EnvPrefix), names, EnvName, "see cellserver --help"))
	}
}

// serviceVariables matches what Kubernetes sets for services that are named cellserver or begin so; _PORT is apart.
const serviceVariables = `^CELLSERVER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// EnvPrefix begins the names of the variables that are settings.
const EnvPrefix = "CELLSERVER_"

// EnvName returns the variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

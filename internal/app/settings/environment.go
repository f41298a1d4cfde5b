package settings

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"cellserver/internal/app/usage"
)

// WarnOfUnknownVariables warns of variables that look like settings, such as a misspelt password. Values,
// which may be secrets, are never logged.
func WarnOfUnknownVariables(environ []string, log *slog.Logger) {
	names := settingNames()
	isVariable := func(variable string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return EnvName(name) == variable })
	}
	services := regexp.MustCompile(serviceVariables)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvPrefix) || isVariable(name) || services.MatchString(name) ||
			// set by a service, unlike an imagined setting
			strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
			continue
		}
		log.Warn("unknown setting " + name + " has no effect; " +
			usage.Hint(strings.TrimPrefix(name, EnvPrefix), names, EnvName, "see cellserver --help"))
	}
}

// serviceVariables matches what Kubernetes sets for services named cellserver or with that prefix, except
// _PORT.
const serviceVariables = `^CELLSERVER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// EnvPrefix begins the name of each setting's variable.
const EnvPrefix = "CELLSERVER_"

// EnvName returns the variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

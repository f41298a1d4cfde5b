package usage

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// otherNames maps names of Redis and its tools to ours where no spelling is near.
func otherNames() map[string]string {
	return map[string]string{
		"port": "addr", "p": "addr", "bind": "addr", "host": "addr", "listen": "addr",
		"tls-port": "tls-addr", "tls-ca-cert-file": "tls-client-ca",
		"dir": "data-dir", "appendonly": "data-dir", "save": "data-dir", "appendfsync": "fsync-interval",
		"c": "config",
	}
}

// Removed maps settings of earlier versions to what to do instead.
func Removed() map[string]string {
	return map[string]string{
		"handshake-timeout":     "delete it; TLS and authentication have 10 seconds",
		"metrics-password-file": "use metrics-token-file, with the password alone; any user name has it",
		"prefilter":             "delete it; it is always on",
		"repl-interval":         "delete it; the time between rounds of changes adapts itself",
	}
}

// Hint suggests the name that was meant, written by show (nil for as is), or returns otherwise.
func Hint(name string, names []string, show func(name string) string, otherwise string) string {
	if show == nil {
		show = func(name string) string { return name }
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if instead := Removed()[name]; instead != "" {
		return "it was removed: " + instead
	}
	if meant := otherNames()[name]; slices.Contains(names, meant) {
		return "use " + show(meant)
	}
	if nearest := flagvalue.Nearest(name, names); nearest != "" {
		return "did you mean " + show(nearest) + "?"
	}
	return otherwise
}

// FlagError returns a mistake in the flags for pflag's error, whose text it replaces.
func FlagError(command string, fs *pflag.FlagSet, err error) error {
	see := "see " + command + " --help"
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		return Errorf("%w", flagvalue.Describe("--"+invalid.GetFlag().Name, invalid.GetValue(), err))
	case errors.As(err, &bare):
		return Errorf("--%s requires a value; %s", bare.GetFlag().Name, see)
	case errors.As(err, &unknown):
		return unknownFlag(fs, unknown, see)
	}
	return Errorf("%w; %s", err, see)
}

func unknownFlag(fs *pflag.FlagSet, unknown *pflag.NotExistError, see string) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	name, given := unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" { // or a long flag with one hyphen
		name, _, _ = strings.Cut(short, "=")
		given = "-" + name
	}
	return Errorf("unknown flag %s; %s", given, Hint(name, names, func(name string) string { return "--" + name }, see))
}

package cli

import (
	"io"
	"log/slog"
	neturl "net/url"
	"os"

	"github.com/spf13/pflag"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

// passwordVariable is redis-cli's. A command reads it for one server, so that none learns another's password.
const passwordVariable = "REDISCLI_AUTH"

// account is what a command signs in with to a server whose URL has no password.
type account struct {
	user     string // instead of the URL's, if not empty
	flag     string // of file
	file     string // has the password
	variable string // read without a file; "" for none
}

// define defines the flag of the file.
func (a *account) define(flags *pflag.FlagSet, flag, server, variable string) {
	a.flag, a.variable = "--"+flag, variable
	text := "`file` with the password of " + server
	if variable != "" {
		text += "; without it, the variable " + variable + " is read"
	}
	flags.StringVar(&a.file, flag, "", text)
}

// ways says how to give the password.
func (a *account) ways() string {
	if a.variable == "" {
		return a.flag
	}
	return a.flag + " or " + a.variable
}

// addTo returns a server's URL, which a flag names, with user and password. A URL that cannot be parsed
// stays, for its reader to refuse.
func (a *account) addTo(url, flag string, stderr io.Writer) (string, error) {
	u, err := neturl.Parse(url)
	if err != nil {
		return url, nil //nolint:nilerr // its reader says it
	}
	secret, err := settings.ReadSecret(a.flag, a.file, "the password", slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return "", usage.Errorf("%w", err)
	}
	user := u.User.Username()
	if a.user != "" {
		user = a.user
	}
	inURL, _ := u.User.Password()
	switch {
	case inURL != "" && secret != "":
		return "", usage.Errorf("the URL of %s has a password, and %s names another; leave one of them out", flag, a.flag)
	case inURL != "":
		secret = inURL
	case secret == "" && a.variable != "":
		secret = os.Getenv(a.variable)
	}
	switch {
	case secret != "":
		u.User = neturl.UserPassword(user, secret)
	case user != "": // not shown: it may be a password in the wrong place
		return "", usage.Errorf("%s: a user requires a password; give it by %s", flag, a.ways())
	}
	return u.String(), nil
}

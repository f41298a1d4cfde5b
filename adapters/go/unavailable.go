package cellserver

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrMisconfigured is wrapped by errors that trying again does not end, such as those of an unknown limit,
// a missing right or no password. They are returned whatever OnError says. The server delays the reply to
// a wrong password, mostly beyond DefaultTimeout, which then is all that a Limiter knows.
var ErrMisconfigured = errors.New("cellserver: misconfigured")

// isUnavailable reports whether an error of a call says nothing of the call: no server answers, or it is
// full, loading, no leader, or its store is away. The Python adapter has the same table.
func isUnavailable(err error) bool {
	var sentinels interface{ Unwrap() []error } // go-redis joins the errors of all Sentinels
	var answer redis.Error
	switch {
	case errors.Is(err, errReply):
		return false
	case errors.As(err, &sentinels) || !errors.As(err, &answer):
		return true
	}
	text := answer.Error()
	code, _, _ := strings.Cut(text, " ")
	switch code {
	case "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY",
		"STOREDOWN", "TOOMANYHOLDS", "TRYAGAIN":
		return true
	}
	for _, part := range []string{
		"max number of clients", "new keys per second from this address", "the store failed",
		"conflicts with other clients", "was ended before it was done",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

package observe

import (
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Redacted returns a call's arguments without passwords.
func Redacted(c *catalog.Command, args [][]byte) [][]byte {
	hide := func(from, to int) {
		hidden := []byte("(redacted)")
		args = slices.Clone(args)
		for i := max(from, 0); i < min(to, len(args)); i++ {
			args[i] = hidden
		}
	}
	switch c.FullName() {
	case "auth":
		hide(1, len(args))
	case "hello":
		for i := 1; i < len(args); i++ {
			switch glob.Fold(args[i]) {
			case "auth":
				hide(i+1, i+3)
				i += 2
			case "setname":
				i++
			}
		}
	case "config|set":
		for i := 2; i < len(args); i += 2 {
			switch glob.Fold(args[i]) {
			case "requirepass", "masterauth", "masteruser", "tls-key-file-pass", "tls-client-key-file-pass": // ours and Redis's
				hide(i+1, i+2)
			}
		}
	}
	return args
}

// Bounds of a slow call, as in Redis.
const (
	maxSlowArgs     = 32
	maxSlowArgBytes = 128
)

// ShortArgs copies a call's arguments, truncated for the slow log.
func ShortArgs(args [][]byte) []string {
	short := make([]string, min(len(args), maxSlowArgs))
	for i := range short {
		short[i] = shortArg(args[i])
	}
	if left := len(args) - maxSlowArgs; left > 0 {
		short[maxSlowArgs-1] = "... (" + strconv.Itoa(left+1) + " more arguments)"
	}
	return short
}

func shortArg(arg []byte) string {
	if left := len(arg) - maxSlowArgBytes; left > 0 {
		return string(arg[:maxSlowArgBytes]) + "... (" + strconv.Itoa(left) + " more bytes)"
	}
	return string(arg)
}

// BatchArgs describes a batch by its first call and size, for one entry of the slow log.
func BatchArgs(c *catalog.Command, batch []store.Request) []string {
	args := append(strings.Split(strings.ToUpper(c.FullName()), "|"), shortArg(batch[0].Key.Name))
	if n := len(batch) - 1; n > 0 {
		args = append(args, "... ("+strconv.Itoa(n)+" more calls in one batch)")
	}
	return args
}

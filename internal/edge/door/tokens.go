package door

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Tokens maps tokens to names of ACL users. The zero value has none. It is safe for concurrent use.
type Tokens struct {
	users atomic.Pointer[map[[sha256.Size]byte]string]
}

// minTokenBytes is long enough that nobody guesses a random token.
const minTokenBytes = 16

// User returns the name of a token's user, or "". Its time does not depend on the tokens.
func (t *Tokens) User(token string) string {
	users := t.users.Load()
	if users == nil {
		return ""
	}
	return (*users)[sha256.Sum256([]byte(token))]
}

// Users returns the sorted names of the tokens' users.
func (t *Tokens) Users() []string {
	users := t.users.Load()
	if users == nil {
		return nil
	}
	return slices.Compact(slices.Sorted(maps.Values(*users)))
}

// Set replaces the tokens by those of a file's text: a line "TOKEN USER" each; lines that begin with # and
// empty ones do not count. After an error the previous tokens stay.
func (t *Tokens) Set(text []byte) error {
	users := map[[sha256.Size]byte]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case len(words) != 2:
			return fmt.Errorf("line %d: want a token and the name of an ACL user, separated by a space", n)
		case len(words[0]) < minTokenBytes:
			return fmt.Errorf("line %d: the token is shorter than %d characters, and could be guessed", n, minTokenBytes)
		case strings.ContainsFunc(words[0], func(r rune) bool { return !isTokenRune(r) }):
			return fmt.Errorf("line %d: a token may have letters, digits and -._~ only, as it may stand in a path", n)
		}
		hash := sha256.Sum256([]byte(words[0]))
		if _, twice := users[hash]; twice {
			return fmt.Errorf("line %d: the token stands in an earlier line, too", n)
		}
		users[hash] = words[1]
	}
	if err := lines.Err(); err != nil {
		return err
	}
	t.users.Store(&users)
	return nil
}

func isTokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r)
}

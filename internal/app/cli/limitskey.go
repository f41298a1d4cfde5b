package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/smallfile"
	"cellserver/internal/decide/namedlimit"
)

const limitsKeyHelp = `Print the key that by= of the HTTP API composes of some parts of a request, for CL.LIMIT OVERRIDE, CL.LIMIT EXPLAIN, CL.CHECK, and DEL.

A PART is the value of one part of by=, in its order: a path, a header's value, or ip:ADDRESS, of which an IPv6 one stands for its /64. With
--http-ipv6-prefix the bits follow, as in ip:2001:db8::1/56.
One part is the key itself; several have their lengths before them, and so has a single one that reads as such a list.

For a part with hash: in by=, PART is hash:FILE, and the file has the secret, or hash:- for a secret on standard input, without a
final newline. So no command line shows it. A file of limits has the printed key; several parts may be a list there.`

const limitsKeyExample = `  cellserver limits key ip:192.0.2.1 /login
  cellserver limits key ip:2001:db8:1:2::3
  cellserver limits key hash:acme.secret
  pass show acme/api-key | cellserver limits key hash:-`

func limitsKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key PART...", Short: "print the key of parts of a request", Long: limitsKeyHelp, Example: limitsKeyExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > namedlimit.MaxParts {
				return usage.Errorf("limits key: want 1 to %d PARTs, got %d; see %s --help", namedlimit.MaxParts, len(args), cmd.CommandPath())
			}
			return nil
		},
		Annotations: usage.Exits("the key is printed", "an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			parts := slices.Clone(args)
			for i, part := range parts {
				var err error
				if parts[i], err = partOf(part, cmd.InOrStdin()); err != nil {
					return fmt.Errorf("limits key: %w", err)
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", namedlimit.AppendKey(nil, parts...))
			return err
		},
	}
}

// partOf returns a part of a key, or the hash of the secret in the file that it names.
func partOf(part string, stdin io.Reader) (string, error) {
	if address, isIP := strings.CutPrefix(part, "ip:"); isIP {
		return networkOf(address)
	}
	path, isSecret := strings.CutPrefix(part, "hash:")
	switch {
	case part == "":
		return "", errors.New("a part is empty; by= refuses a request without it")
	case !isSecret:
		return part, nil
	case path == "":
		return "", errors.New("hash: requires a file with the secret, as in hash:FILE, or hash:- for standard input")
	}
	var text []byte
	var err error
	if path == "-" {
		path = "standard input"
		text, err = io.ReadAll(io.LimitReader(stdin, smallfile.MaxBytes))
	} else {
		text, err = smallfile.Read(path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, smallfile.Cause(err))
	}
	secret := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	switch {
	case len(secret) == 0:
		return "", fmt.Errorf("%s is empty; it must have the secret", path)
	case bytes.ContainsAny(secret, "\r\n"):
		return "", fmt.Errorf("%s has several lines; give one secret", path)
	case isProxysLine(string(secret)):
		return "", fmt.Errorf("%s has a line of a proxy's file; give the secret alone, as by: cut -d ' ' -f 1", path)
	}
	return namedlimit.HashPart(string(secret)), nil
}

// isProxysLine reports whether a secret is a line of deploy/'s file of API keys for nginx (KEY KEY;) or Caddy
// (KEY yes). Others may have blanks, as Authorization has.
func isProxysLine(secret string) bool {
	words := strings.Fields(secret)
	return len(words) == 2 && (words[1] == "yes" || words[1] == words[0]+";")
}

// networkOf returns the part of an address, after which the bits of --http-ipv6-prefix may follow.
func networkOf(text string) (string, error) {
	address, after, given := strings.Cut(text, "/")
	a, err := netip.ParseAddr(address)
	bits := settings.DefaultIPv6PrefixBits
	if err == nil && given {
		bits, err = strconv.Atoi(after)
	}
	if err != nil || given && (a.Unmap().Is4() || bits < settings.MinIPv6PrefixBits || bits > a.BitLen()) {
		return "", fmt.Errorf("ip: requires an address, as in ip:192.0.2.1 or ip:2001:db8::1, and after one of IPv6 the bits of "+
			"--http-ipv6-prefix, %d to 128, as in ip:2001:db8::1/56; got %s", settings.MinIPv6PrefixBits, strconv.Quote(text))
	}
	return namedlimit.NetworkPart(a, bits), nil
}

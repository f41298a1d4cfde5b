package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/smallfile"
	"cellserver/internal/decide/namedlimit"
)

const limitsKeyHelp = `Print the key that by= of the HTTP API composes of some parts of a request, for CL.LIMIT OVERRIDE, CL.LIMIT EXPLAIN, CL.CHECK, and DEL.

A PART is the value of one part of by=, in its order: an address (of IPv6 its network, as 2001:db8:1:2::/64), a path, a header's value.
One part is the key itself; several have their lengths before them, and so has a single one that reads as such a list.

For a part with hash: in by=, PART is hash:FILE, and the file has the secret, or hash:- for a secret on standard input, without a
final newline. So no command line shows it. A file of limits has the printed key; several parts may be a list there.`

const limitsKeyExample = `  cellserver limits key 192.0.2.1 /login
  cellserver limits key hash:acme.secret
  pass show acme/api-key | cellserver limits key hash:-`

func limitsKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key PART...", Short: "print the key of parts of a request", Long: limitsKeyHelp, Example: limitsKeyExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > namedlimit.MaxParts {
				return usage.Errorf("key: want 1 to %d PARTs, got %d; see %s --help", namedlimit.MaxParts, len(args), cmd.CommandPath())
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
	}
	return namedlimit.HashPart(string(secret)), nil
}

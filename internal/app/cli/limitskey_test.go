package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const wantsAddress = "ip: requires an address, as in ip:192.0.2.1 or ip:2001:db8::1, and after one of IPv6 the bits of " +
	"--http-ipv6-prefix, 32 to 128, as in ip:2001:db8::1/56; got "

// TestLimitsKey: it prints the key that by= composes of the parts, and shows no secret.
func TestLimitsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "secret\r\n", "empty": "\n", "two": "secret\nother\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, stdin, want, err string }{
		{args: "acme", want: "acme"},
		{args: "4:acme,3:foo", want: "12:4:acme,3:foo"},
		{args: "192.0.2.1 /login", want: "9:192.0.2.1,6:/login"},
		{args: "hash:-", stdin: "secret\n", want: "2bb80d537b1da3e38bd30361aa855686"},
		{args: "hash:DIR/secret", want: "2bb80d537b1da3e38bd30361aa855686"},
		{args: "hash:DIR/secret /v1", want: "32:2bb80d537b1da3e38bd30361aa855686,3:/v1"},
		{args: "hash:", err: "hash: requires a file with the secret, as in hash:FILE, or hash:- for standard input"},
		{args: "hash:-", err: "standard input is empty; it must have the secret"},
		{args: "hash:DIR/empty", err: "DIR/empty is empty; it must have the secret"},
		{args: "hash:DIR/two", err: "DIR/two has several lines; give one secret"},
		{args: "hash:-", stdin: "KEY KEY;\n", err: "standard input has a line of a proxy's file; give the secret alone, as by: cut -d ' ' -f 1"},
		{args: "hash:-", stdin: "KEY yes\n", err: "standard input has a line of a proxy's file; give the secret alone, as by: cut -d ' ' -f 1"},
		{args: "hash:-", stdin: "Bearer KEY\n", want: "4361adc8d3cd77000cf5af367fd0c047"},
		{args: "ip:192.0.2.1", want: "192.0.2.1"},
		{args: "ip:::ffff:192.0.2.1", want: "192.0.2.1"},
		{args: "ip:2001:db8::1", want: "2001:db8::/64"},
		{args: "ip:2001:db8::1 /login", want: "13:2001:db8::/64,6:/login"},
		{args: "ip:2001:db8:0:1ff::1/56", want: "2001:db8:0:100::/56"},
		{args: "ip:2001:db8::1/128", want: "2001:db8::1"},
		{args: "ip:192.0.2.0/24", err: wantsAddress + `"192.0.2.0/24"`},
		{args: "ip:2001:db8::1/31", err: wantsAddress + `"2001:db8::1/31"`},
		{args: "ip:laoqian", err: wantsAddress + `"laoqian"`},
		{args: "hash:DIR/none", err: "cannot read DIR/none: no such file or directory"},
	} {
		var out bytes.Buffer
		args := strings.Fields("limits key " + strings.ReplaceAll(tt.args, "DIR", dir))
		err := Run(t.Context(), Program{}, args, strings.NewReader(tt.stdin), &out, io.Discard)
		if tt.err != "" {
			if want := "limits key: " + strings.ReplaceAll(tt.err, "DIR", dir); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", tt.args, err, want)
			}
		} else if err != nil || out.String() != tt.want+"\n" {
			t.Errorf("%s: got %q, %v, want %s", tt.args, out.String(), err, tt.want)
		}
	}
	if err := Run(t.Context(), Program{}, []string{"limits", "key", ""}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "a part is empty") {
		t.Errorf("an empty part: %v", err)
	}
}

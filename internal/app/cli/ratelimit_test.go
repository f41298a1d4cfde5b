package cli

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/app/settings"
)

// TestArguments: the name of the process may be a subcommand.
func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ process, want []string }{
		{[]string{"cellserver", "--addr", ":1"}, []string{"--addr", ":1"}},
		{[]string{"/bin/ratelimit"}, []string{"ratelimit"}},
		{[]string{"ratelimit.exe", "-x"}, []string{"ratelimit", "-x"}},
		{[]string{"./ratelimiter"}, []string{}},
		{nil, nil},
	} {
		if got := Arguments(tt.process); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.process, got, tt.want)
		}
	}
}

// TestRatelimitIgnoresArguments: those of other people's manifests, but not the question for help.
func TestRatelimitIgnoresArguments(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		served bool
	}{
		{[]string{"ratelimit"}, true},
		{[]string{"ratelimit", "--addr", "x", "-v", "word", "--", "check"}, true},
		{[]string{"ratelimit", "--addr", "x", "--help"}, true},
		{[]string{"ratelimit", "-h", "x"}, true},
		{[]string{"ratelimit", "--help"}, false},
		{[]string{"ratelimit", "-h"}, false},
		{[]string{"help", "ratelimit"}, false},
	} {
		var served *settings.Options
		p := Program{Serve: func(_ context.Context, o *settings.Options, _ io.Writer) error {
			served = o
			return nil
		}}
		var out bytes.Buffer
		if err := Run(t.Context(), p, tt.args, nil, &out, &out); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if (served != nil) != tt.served || served != nil && !served.Doors.Envoy.Ratelimit.On {
			t.Errorf("%q: served %v", tt.args, served != nil)
		}
		if help := out.String(); !tt.served && (!strings.Contains(help, "GRPC_PORT") || !strings.Contains(help, "STATSD_HOST")) {
			t.Errorf("%q: no variables in %s", tt.args, help)
		}
	}
}

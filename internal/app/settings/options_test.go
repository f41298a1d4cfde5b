package settings

import (
	"os"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
)

// parseOptions parses a server's command line, environment and config file.
func parseOptions(args []string) (*Options, error) {
	o := &Options{}
	fs := o.FlagSet(o.FlagGroups())
	if err := fs.Parse(args); err != nil {
		return nil, usage.Mistake(usage.FlagMistake(fs.Name(), fs, err))
	}
	return o, o.Complete(fs, os.LookupEnv)
}

// TestNullIsText: the text null is quoted, without which it would be no value.
func TestNullIsText(t *testing.T) {
	if text := yamlValue(&pflag.Flag{}, "null"); text != `"null"` {
		t.Errorf("it is shown as %s", text)
	}
}

func TestEveryFlagIsAVariable(t *testing.T) {
	t.Setenv("CELLSERVER_MAXCLIENTS", "7")
	t.Setenv("CELLSERVER_BURST_IS_CAPACITY", "true")
	t.Setenv("CELLSERVER_SHUTDOWN_TIMEOUT", "3s")
	o, err := parseOptions([]string{"--maxclients", "8"})
	if err != nil || o.MaxClients != 8 || !o.BurstIsCapacity || o.ShutdownTimeout != 3*time.Second {
		t.Errorf("got %+v, %v; want the flag before the variable, and the variables", o, err)
	}
}

package main

import (
	"os"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parseOptions reads a command line of the server, and what it leaves out from the environment and the config file.
func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := o.flagSet(o.flagGroups())
	if err := fs.Parse(args); err != nil {
		return nil, mistake(flagMistake(fs.Name(), fs, err))
	}
	return o, o.complete(fs, os.LookupEnv)
}

// TestNullIsText: the text null is shown with the quotes without which it would be no value.
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
	if err != nil || o.maxClients != 8 || !o.burstIsCapacity || o.shutdownTimeout != 3*time.Second {
		t.Errorf("got %+v, %v; want the flag before the variable, and the variables", o, err)
	}
}

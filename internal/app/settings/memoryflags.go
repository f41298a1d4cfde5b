package settings

import (
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/memory"
	"cellserver/internal/store"
)

// AutoMemory is the --maxmemory that derives from the cgroup.
const AutoMemory = "auto"

// DefaultClients returns the default of --maxmemory-clients.
func DefaultClients() memory.Part {
	p, _ := memory.ParsePart("25%")
	return p
}

func (o *Options) defineMemory(fs *pflag.FlagSet) {
	o.MaxMemory = AutoMemory
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "auto or a size, such as 150mb", Get: func() string { return o.MaxMemory },
		Set: func(text string) bool {
			_, err := memory.Parse(text)
			if err == nil || text == AutoMemory {
				o.MaxMemory = text
			}
			return err == nil || text == AutoMemory
		},
	}, "maxmemory", "largest `size` of the server's memory, such as 150mb; 0 for no limit; auto is 70 % of the cgroup's limit, if any")
	flagvalue.ChoiceVar(fs, &o.MaxMemoryPolicy, "maxmemory-policy", store.VolatileTTL.String(), "`policy` at the maximum: volatile-ttl (a new key evicts one that expires soon) or noeviction (it is refused)", memory.PolicyNames()...)
}

func (o *Options) checkMemory() error {
	if o.MaxMemory == AutoMemory {
		return nil
	}
	bytes, _ := memory.Parse(o.MaxMemory)
	if err := memory.Check(bytes, o.MaxMemoryClients); err != nil {
		return fmt.Errorf("--maxmemory %w", err)
	}
	return nil
}

// MaxMemoryBytes returns --maxmemory in bytes, and whether the server needs more.
func (o *Options) MaxMemoryBytes() (maxBytes int64, tooSmall bool) {
	if o.MaxMemory == AutoMemory {
		return memory.Auto()
	}
	maxBytes, _ = memory.Parse(o.MaxMemory)
	return maxBytes, false
}

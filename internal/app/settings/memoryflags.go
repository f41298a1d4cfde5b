package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/memory"
	"cellserver/internal/store"
)

const autoMemory = "auto"

func defaultClients() memory.Part {
	p, _ := memory.ParsePart("25%")
	return p
}

func (o *options) defineMemory(fs *pflag.FlagSet) {
	o.maxMemory = autoMemory
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "auto or a size, such as 150mb", Get: func() string { return o.maxMemory },
		Set: func(text string) bool {
			_, err := memory.Parse(text)
			if err == nil || text == autoMemory {
				o.maxMemory = text
			}
			return err == nil || text == autoMemory
		},
	}, "maxmemory", "largest `size` of the server's memory, such as 150mb; 0 for none; auto is 70 % of the cgroup's limit, and none without one")
	flagvalue.ChoiceVar(fs, &o.maxMemoryPolicy, "maxmemory-policy", memory.PolicyName(store.VolatileTTL), "`what` becomes of a new key that has no room: volatile-ttl (it evicts one that would expire soon) or noeviction (it is refused)", memory.PolicyNames()...)
}

func (o *options) checkMemory() error {
	if o.maxMemory == autoMemory {
		return nil
	}
	bytes, _ := memory.Parse(o.maxMemory)
	if err := memory.Check(bytes, o.maxMemoryClients); err != nil {
		return fmt.Errorf("--maxmemory %w", err)
	}
	return nil
}

// maxMemoryBytes is what --maxmemory comes to, and whether that is less than the server needs.
func (o *options) maxMemoryBytes() (maxBytes int64, tooSmall bool) {
	if o.maxMemory == autoMemory {
		return memory.Auto()
	}
	maxBytes, _ = memory.Parse(o.maxMemory)
	return maxBytes, false
}

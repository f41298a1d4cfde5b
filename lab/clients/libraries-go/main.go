// Command libraries-go uses Go's libraries for limits on a Redis as their users do, and prints what it saw.
// See lab/clients/libraries/README.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"
)

// part is a part of a library's work. What it saw is the same on every server that does what Redis does.
type part struct {
	library, module, name string
	run                   func(context.Context, *redis.Client) ([]string, error)
}

// gone is the name of the part that has no server: its connections are refused.
const gone = "gone"

// line is what a part saw.
type line struct {
	Library string   `json:"library"`
	Version string   `json:"version"`
	Part    string   `json:"part"`
	Saw     []string `json:"saw"`
	Error   string   `json:"error,omitempty"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "libraries-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := open("REDIS_URL")
	if err != nil {
		return err
	}
	nothing, err := open("REDIS_GONE_URL")
	if err != nil {
		return err
	}
	versions := moduleVersions()
	for _, p := range parts() {
		client := server
		if p.name == gone {
			client = nothing
		}
		l := line{Library: p.library, Version: versions[p.module], Part: p.name}
		var failure error
		if l.Saw, failure = p.run(ctx, client); failure != nil {
			l.Error = failure.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func open(variable string) (*redis.Client, error) {
	options, err := redis.ParseURL(os.Getenv(variable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	options.MaxRetries, options.DialerRetries = -1, 1 // else the part without a server takes seconds
	return redis.NewClient(options), nil
}

func moduleVersions() map[string]string {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = strings.TrimPrefix(m.Version, "v")
		}
	}
	return versions
}

func parts() []part {
	const (
		rate      = "github.com/go-redis/redis_rate/v10"
		throttled = "github.com/throttled/throttled/v2"
		ulule     = "github.com/ulule/limiter/v3"
		httprate  = "github.com/go-chi/httprate-redis"
		rueidis   = "github.com/redis/rueidis/rueidislimiter"
	)
	return []part{
		{"redis_rate", rate, "Allow", rateAllow},
		{"redis_rate", rate, "AllowN, AllowAtMost, Reset", rateOthers},
		{"redis_rate", rate, gone, rateGone},
		{"throttled", throttled, "middleware", throttledMiddleware},
		{"throttled", throttled, gone, throttledGone},
		{"ulule/limiter", ulule, "middleware", ululeMiddleware},
		{"ulule/limiter", ulule, "Peek, Increment, Reset", ululeOthers},
		{"ulule/limiter", ulule, gone, ululeGone},
		{"httprate-redis", httprate, "middleware", httprateMiddleware},
		{"httprate-redis", httprate, gone, httprateGone},
		{"rueidislimiter", rueidis, "Check, Allow, AllowN", rueidisLimits},
		{"rueidislimiter", rueidis, gone, rueidisGone},
	}
}

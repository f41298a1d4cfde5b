package ratelimit

import "strings"

// About is the subcommand's help.
const About = `Serve in place of envoyproxy/ratelimit: the settings come from its environment, with its defaults.

The program does so without this word, too, where its name is ratelimit, as the image's /bin/ratelimit. CELLSERVER_ADDR and the other
variables of cellserver's own settings win, but for those that the image has. Arguments are ignored.

The rate limit service and its HTTP are open to other hosts. The Redis protocol, the HTTP API and the live page are on loopback
unless they are set. Nothing is written without CELLSERVER_DATA_DIR. With CELLSERVER_USE_REDIS=true replicas count together in the
Redis of REDIS_URL; otherwise each counts alone.`

// Variable is a variable for the help.
type Variable struct{ Name, Does string }

// Variables returns those that do something, and the names of the others.
func Variables() (all []Variable, others []string) {
	for _, v := range variables() {
		if v.does == "" {
			others = append(others, v.name)
			continue
		}
		does := strings.ReplaceAll(v.does, "`", "")
		if v.initial != "" {
			does += " (default " + v.initial + ")"
		}
		all = append(all, Variable{v.name, does})
	}
	return all, others
}

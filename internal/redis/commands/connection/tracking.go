package connection

import (
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

// CLIENT TRACKING is accepted, because some clients send it when they connect, and has no effect: a limiter's
// state changes with time, so nothing is worth caching.

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT]
// [NOLOOP].
func clientTracking(c execute.Call, conn execute.Connection, args [][]byte) error {
	wanted, err := trackingOptions(args[3:])
	if err != nil {
		return err
	}
	on, err := argument.OnOff(args[2])
	if err != nil {
		return err
	}
	if !on { // Redis ignores the rest, too
		wanted = clients.Tracking{}
	} else if wanted, err = combine(wanted, conn.Client().Info().Tracking); err != nil {
		return err
	}
	conn.Client().Change(func(i *clients.Info) { i.Tracking = wanted })
	return c.OK()
}

func trackingOptions(args [][]byte) (t clients.Tracking, err error) {
	t.On = true
	for i := 0; i < len(args); i++ {
		switch option := glob.Fold(args[i]); {
		case option == "redirect" && i+1 < len(args):
			return t, reply.Error("ERR CLIENT TRACKING REDIRECT is not supported: nothing is cached here, so no client is told of changes")
		case option == "prefix" && i+1 < len(args):
			i++
			t.Prefixes = append(t.Prefixes, string(args[i]))
		case option == "bcast":
			t.BCast = true
		case option == "optin":
			t.OptIn = true
		case option == "optout":
			t.OptOut = true
		case option == "noloop":
			t.NoLoop = true
		default:
			return t, reply.ErrSyntax
		}
	}
	return t, nil
}

// combine merges options into those before, if they are compatible.
func combine(t, before clients.Tracking) (clients.Tracking, error) {
	const different = " before disabling tracking for this client, and then re-enabling it with a different mode."
	switch {
	case len(t.Prefixes) > 0 && !t.BCast:
		return t, reply.Error("ERR PREFIX option requires BCAST mode to be enabled")
	case before.On && before.BCast != t.BCast:
		return t, reply.Error("ERR You can't switch BCAST mode on/off" + different)
	case t.BCast && (t.OptIn || t.OptOut):
		return t, reply.Error("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case t.OptIn && t.OptOut:
		return t, reply.Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case t.OptIn && before.OptOut || t.OptOut && before.OptIn:
		return t, reply.Error("ERR You can't switch OPTIN/OPTOUT mode" + different)
	}
	err := addPrefixes(&t, before.Prefixes)
	return t, err
}

const maxPrefixes = 128 // of one client, compared with each other

// addPrefixes merges the earlier prefixes, which must not overlap the new ones.
func addPrefixes(t *clients.Tracking, before []string) error {
	if t.BCast && len(t.Prefixes) == 0 && !slices.Contains(before, "") {
		before = append(slices.Clip(before), "") // all keys
	}
	size := 0
	for _, prefix := range t.Prefixes {
		size += len(prefix)
	}
	if len(before)+len(t.Prefixes) > maxPrefixes || size > maxClientText {
		return reply.Error("ERR more than " + strconv.Itoa(maxPrefixes) + " prefixes, " +
			"or longer than 1024 bytes together")
	}
	for i, prefix := range t.Prefixes {
		if at := slices.IndexFunc(before, overlaps(prefix)); at >= 0 {
			return errOverlap(prefix, "an existing prefix", before[at])
		}
		if at := slices.IndexFunc(t.Prefixes[i+1:], overlaps(prefix)); at >= 0 {
			return errOverlap(prefix, "another provided prefix", t.Prefixes[i+1+at])
		}
	}
	t.Prefixes = slices.Concat(before, t.Prefixes)
	slices.Sort(t.Prefixes)
	return nil
}

func overlaps(a string) func(string) bool {
	return func(b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
}

func errOverlap(prefix, with, other string) error {
	return reply.Error("ERR Prefix '" + resp.Printable([]byte(prefix)) + "' overlaps with " + with + " '" + resp.Printable([]byte(other)) +
		"'. Prefixes for a single client must not overlap.")
}

func clientTrackingInfo(c execute.Call, conn execute.Connection, _ [][]byte) error {
	t := conn.Client().Info().Tracking
	var flags []string
	for _, f := range []struct {
		on   bool
		name string
	}{{!t.On, "off"}, {t.On, "on"}, {t.BCast, "bcast"}, {t.OptIn, "optin"}, {t.OptOut, "optout"}, {t.NoLoop, "noloop"}} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	c.Reply().Map(3)
	c.Reply().BulkString("flags")
	c.Reply().StringSet(flags)
	c.Reply().BulkString("redirect")
	c.Reply().Int(t.Redirect())
	c.Reply().BulkString("prefixes")
	c.Reply().Array(len(t.Prefixes))
	for _, prefix := range t.Prefixes {
		c.Reply().BulkString(prefix)
	}
	return nil
}

func clientGetRedir(c execute.Call, conn execute.Connection, _ [][]byte) error {
	t := conn.Client().Info().Tracking
	c.Reply().Int(t.Redirect())
	return nil
}

func clientCaching(c execute.Call, conn execute.Connection, args [][]byte) error {
	t := conn.Client().Info().Tracking
	if !t.On {
		return reply.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	yes, err := argument.YesNo(args[2])
	switch {
	case err != nil:
		return err
	case yes && !t.OptIn:
		return reply.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case yes:
		return reply.Error("ERR nothing is cached here: the state of a funnel changes with time; do not use client-side caching for it")
	case !t.OptOut:
		return reply.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	}
	return c.OK()
}

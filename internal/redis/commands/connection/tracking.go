package connection

import (
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

// No client is told of changes, so one that caches would serve old values for ever. CLIENT TRACKING accepts
// OPTIN alone, which some clients send when they connect: by it nothing is cached before CLIENT CACHING YES,
// which is refused together with what it is about.

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT]
// [NOLOOP].
func clientTracking(c execute.Call, conn execute.Connection, args [][]byte) error {
	optIn, others, err := trackingOptions(args[3:])
	if err != nil {
		return err
	}
	on, err := argument.OnOff(args[2])
	switch {
	case err != nil:
		return err
	case on && (others || !optIn): // Redis ignores the options of OFF, too
		return reply.ErrNoTracking
	}
	conn.Track(on)
	return c.OK()
}

// trackingOptions reports OPTIN, and whether there is any other option.
func trackingOptions(args [][]byte) (optIn, others bool, err error) {
	for i := 0; i < len(args); i++ {
		switch option, last := glob.Fold(args[i]), i == len(args)-1; {
		case option == "optin":
			optIn = true
			continue
		case option == "redirect" && !last:
			i++
			if _, ok := resp.ParseInt(args[i]); !ok {
				return false, false, reply.ErrNotInteger
			}
		case option == "prefix" && !last:
			i++
		case option == "bcast", option == "optout", option == "noloop":
		default:
			return false, false, reply.ErrSyntax
		}
		others = true
	}
	return optIn, others, nil
}

func clientTrackingInfo(c execute.Call, conn execute.Connection, _ [][]byte) error {
	i := conn.Client().Info()
	flags := []string{"off"}
	if i.Tracking {
		flags = []string{"on", "optin"}
	}
	c.Reply().Map(3)
	c.Reply().BulkString("flags")
	c.Reply().StringSet(flags)
	c.Reply().BulkString("redirect")
	c.Reply().Int(i.Redirect())
	c.Reply().BulkString("prefixes")
	c.Reply().Array(0)
	return nil
}

func clientGetRedir(c execute.Call, conn execute.Connection, _ [][]byte) error {
	i := conn.Client().Info()
	c.Reply().Int(i.Redirect())
	return nil
}

func clientCaching(_ execute.Call, conn execute.Connection, args [][]byte) error {
	if !conn.Client().Info().Tracking {
		return reply.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	yes, err := argument.YesNo(args[2])
	switch {
	case err != nil:
		return err
	case !yes:
		return reply.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	}
	conn.ForbidCached()
	return reply.ErrNotCached
}

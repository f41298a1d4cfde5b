package command

import (
	"strings"
)

// Client-side caching: a client may ask for it, because some do so when they connect, but nothing here is ever worth
// caching, so no key is tracked and no invalidation sent.

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
func clientTracking(s *Session, args [][]byte) error {
	on, err := onOff(args[2])
	if err != nil {
		return err
	}
	options, err := s.trackingOptions(args[3:])
	if err != nil {
		return err
	}
	if !on {
		options = ""
	}
	s.client.change(func(i *clientInfo) { i.tracking = options })
	s.w.OK()
	return nil
}

// trackingOptions returns the flags of CLIENT TRACKINGINFO, joined by blanks.
func (s *Session) trackingOptions(args [][]byte) (string, error) {
	flags := []string{"on"}
	has := map[string]bool{}
	for i := 0; i < len(args); i++ {
		option := lower(args[i])
		switch {
		case option == "redirect" && i+1 < len(args):
			return "", replyError("ERR CLIENT TRACKING REDIRECT is not supported: nothing is cached here, so no client is told of changes")
		case option == "prefix" && i+1 < len(args):
			i++
		case option == "bcast" || option == "optin" || option == "optout" || option == "noloop":
			if !has[option] {
				flags = append(flags, option)
			}
		default:
			return "", errSyntax
		}
		has[option] = true
	}
	switch {
	case has["prefix"] && !has["bcast"]:
		return "", replyError("ERR PREFIX option requires BCAST mode to be enabled")
	case has["bcast"] && (has["optin"] || has["optout"]):
		return "", replyError("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case has["optin"] && has["optout"]:
		return "", replyError("ERR You can't specify both OPTIN mode and OPTOUT mode")
	}
	return strings.Join(flags, " "), nil
}

func clientTrackingInfo(s *Session, _ [][]byte) error {
	flags, redirect := []string{"off"}, int64(-1)
	if tracking := s.client.snapshot().tracking; tracking != "" {
		flags, redirect = strings.Fields(tracking), 0
	}
	s.w.Map(3)
	s.w.BulkString("flags")
	s.w.Set(len(flags))
	for _, flag := range flags {
		s.w.BulkString(flag)
	}
	s.w.BulkString("redirect")
	s.w.Int(redirect)
	s.w.BulkString("prefixes")
	s.w.Set(0)
	return nil
}

func clientGetRedir(s *Session, _ [][]byte) error {
	if s.client.snapshot().tracking != "" {
		s.w.Int(0)
	} else {
		s.w.Int(-1)
	}
	return nil
}

// clientCaching is CLIENT CACHING YES|NO.
func clientCaching(s *Session, args [][]byte) error {
	tracking := s.client.snapshot().tracking
	if !strings.Contains(tracking, "opt") {
		return replyError("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	yes, err := yesNo(args[2])
	switch {
	case err != nil:
		return err
	case yes:
		return replyError("ERR nothing is cached here: the state of a funnel changes with time; do not use client-side caching for it")
	case !strings.Contains(tracking, "optout"):
		return replyError("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	}
	s.w.OK()
	return nil
}

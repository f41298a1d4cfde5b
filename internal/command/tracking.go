package command

import (
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/resp"
)

// Client-side caching: a client may ask for it, because some do so when they connect, but nothing here is ever worth
// caching, so no key is tracked and no invalidation sent.

// tracking is what CLIENT TRACKING ON said. Its prefixes are never changed, only replaced.
type tracking struct {
	on, bcast, optIn, optOut, noLoop bool

	prefixes []string // sorted
}

// clientTracking is CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
func clientTracking(s *Session, args [][]byte) error {
	wanted, err := trackingOptions(args[3:])
	if err != nil {
		return err
	}
	on, err := onOff(args[2])
	if err != nil {
		return err
	}
	if !on { // then Redis does not look at the rest either
		wanted = tracking{}
	} else if wanted, err = wanted.after(s.client.snapshot().tracking); err != nil {
		return err
	}
	s.client.change(func(i *clientInfo) { i.tracking = wanted })
	s.w.OK()
	return nil
}

func trackingOptions(args [][]byte) (t tracking, err error) {
	t.on = true
	for i := 0; i < len(args); i++ {
		switch option := lower(args[i]); {
		case option == "redirect" && i+1 < len(args):
			return t, replyError("ERR CLIENT TRACKING REDIRECT is not supported: nothing is cached here, so no client is told of changes")
		case option == "prefix" && i+1 < len(args):
			i++
			t.prefixes = append(t.prefixes, string(args[i]))
		case option == "bcast":
			t.bcast = true
		case option == "optin":
			t.optIn = true
		case option == "optout":
			t.optOut = true
		case option == "noloop":
			t.noLoop = true
		default:
			return t, errSyntax
		}
	}
	return t, nil
}

// after returns what the options make of those before, if they can be had together.
func (t tracking) after(before tracking) (tracking, error) {
	const different = " before disabling tracking for this client, and then re-enabling it with a different mode."
	switch {
	case len(t.prefixes) > 0 && !t.bcast:
		return t, replyError("ERR PREFIX option requires BCAST mode to be enabled")
	case before.on && before.bcast != t.bcast:
		return t, replyError("ERR You can't switch BCAST mode on/off" + different)
	case t.bcast && (t.optIn || t.optOut):
		return t, replyError("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case t.optIn && t.optOut:
		return t, replyError("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case t.optIn && before.optOut || t.optOut && before.optIn:
		return t, replyError("ERR You can't switch OPTIN/OPTOUT mode" + different)
	}
	return t, t.addPrefixes(before.prefixes)
}

const maxPrefixes = 128 // of one client; each is compared with all others

// addPrefixes puts the prefixes that there were among the new ones, with which they must not overlap.
func (t *tracking) addPrefixes(before []string) error {
	if t.bcast && len(t.prefixes) == 0 && !slices.Contains(before, "") {
		before = append(slices.Clip(before), "") // all keys, whatever else there is
	}
	size := 0
	for i, prefix := range t.prefixes {
		size += len(prefix)
		if at := slices.IndexFunc(before, overlaps(prefix)); at >= 0 {
			return errOverlap(prefix, "an existing prefix", before[at])
		}
		if at := slices.IndexFunc(t.prefixes[i+1:], overlaps(prefix)); at >= 0 {
			return errOverlap(prefix, "another provided prefix", t.prefixes[i+1+at])
		}
	}
	t.prefixes = slices.Concat(before, t.prefixes)
	if len(t.prefixes) > maxPrefixes || size > maxClientText {
		return replyError("ERR more than " + strconv.Itoa(maxPrefixes) + " prefixes, or longer than 1024 bytes together")
	}
	slices.Sort(t.prefixes)
	return nil
}

func overlaps(a string) func(string) bool {
	return func(b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
}

func errOverlap(prefix, with, other string) error {
	return replyError("ERR Prefix '" + resp.Printable([]byte(prefix)) + "' overlaps with " + with + " '" + resp.Printable([]byte(other)) +
		"'. Prefixes for a single client must not overlap.")
}

func clientTrackingInfo(s *Session, _ [][]byte) error {
	t := s.client.snapshot().tracking
	var flags []string
	for _, f := range []struct {
		on   bool
		name string
	}{{!t.on, "off"}, {t.on, "on"}, {t.bcast, "bcast"}, {t.optIn, "optin"}, {t.optOut, "optout"}, {t.noLoop, "noloop"}} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	s.w.Map(3)
	s.w.BulkString("flags")
	s.replySet(flags)
	s.w.BulkString("redirect")
	s.w.Int(t.redirect())
	s.w.BulkString("prefixes")
	s.w.Array(len(t.prefixes))
	for _, prefix := range t.prefixes {
		s.w.BulkString(prefix)
	}
	return nil
}

func (s *Session) replySet(texts []string) {
	s.w.Set(len(texts))
	for _, text := range texts {
		s.w.BulkString(text)
	}
}

// redirect is the client that is told of changes: itself, or -1 for none.
func (t *tracking) redirect() int64 {
	if t.on {
		return 0
	}
	return -1
}

func clientGetRedir(s *Session, _ [][]byte) error {
	t := s.client.snapshot().tracking
	s.w.Int(t.redirect())
	return nil
}

// clientCaching is CLIENT CACHING YES|NO.
func clientCaching(s *Session, args [][]byte) error {
	t := s.client.snapshot().tracking
	if !t.on {
		return replyError("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	yes, err := yesNo(args[2])
	switch {
	case err != nil:
		return err
	case yes && !t.optIn:
		return replyError("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case yes:
		return replyError("ERR nothing is cached here: the state of a funnel changes with time; do not use client-side caching for it")
	case !t.optOut:
		return replyError("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	}
	s.w.OK()
	return nil
}

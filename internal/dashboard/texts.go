package dashboard

import "golang.org/x/text/language"

// texts is all text of the page in one language. Percent signs are fmt verbs.
type texts struct {
	Lang, Other, OtherName string // HTML's lang, and the other language that the page offers
	Colon, Comma           string

	Title, Skip, Pause, Resume, Lost, NoScript, Languages string

	NowHeading, HistoryHeading, TopHeading, ProbeHeading string
	Waiting, Summary, Of, ShareTitle                     string

	Host, Address, Uptime, Version, InMemory            string
	DaysHours, HoursMinutes, Minutes, UnderAMinute      string
	NoPassword, RefusesHosts, OpenPage, UnencryptedPage string
	Range, WholeRange, Copy, Copied                     string

	DecisionsPerSec, Allowed, Limited, LimitedShare string
	AllowedPerSec, LimitedPerSec                    string
	Latency, LatencyP99, P50, P99, P999             string
	Connections, Keys, Memory, Evicted, Refused     string

	Durability, DurabilityOff, SyncEvery, SyncBeforeReplies, SyncBySystem string
	LoadingPart, FaultFor, FaultSince, FaultForgets, FaultRefuses         string

	Store, StoreConnecting, StoreAnswers, StorePartly, StoreAwayFor, StoreAwaySince, Stop string
	StoreErrors, StoreAllows, StoreDenies, StoreLocal, ByPolicy, StoreNote, StoreScroll   string
	StoreServer, Circuit, CircuitClosed, CircuitOpen, CircuitHalfOpen                     string
	Queued, InFlight, RoundTrip                                                           string

	TableSummary, TableCaption, Minute, TableScroll string

	TopRequested, TopLimited, TopNone, TopNote, PerSec, Share string

	LimitsHeading, LimitsNote, LimitsMore, LimitsScroll, Limit, Windows, Shadow, Yes string

	ProbeNote, Key, KeyHint, Database, PeriodSec, Probe                           string
	KeyMissing, KeyQuotes, KeyTooLong, DatabaseTooLarge                           string
	NotANumber, NumberTooLarge, NumberTooSmall, ZeroRate, TooSlow, FormErrors     string
	NextAllowed, NextLimited, NoState, LevelOf, LeakRate, In, Now, Picture        string
	FunnelOf, Level, Leak, UntilFree, UntilEmpty, ReplyHeading, BucketDescription string
}

// forScript returns the texts that the page's script shows.
func (t *texts) forScript() map[string]string {
	return map[string]string{"pause": t.Pause, "resume": t.Resume, "copy": t.Copy, "copied": t.Copied}
}

// textsFor returns the texts in the language of the query or, without one, of the browser.
func textsFor(requested, acceptLanguage string) *texts {
	switch requested {
	case "en":
		return english()
	case "zh":
		return chinese()
	}
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return english()
	}
	spoken := language.NewMatcher([]language.Tag{language.English, language.Chinese})
	if _, i, _ := spoken.Match(wanted...); i == 1 {
		return chinese()
	}
	return english()
}

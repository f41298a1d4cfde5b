package dashboard

import "golang.org/x/text/language"

// texts is all words of the page in one language. Percent signs are fmt's.
type texts struct {
	Lang, Other, OtherName string // of HTML's lang, and the language that one can switch to
	Colon, Comma           string

	Title, Skip, Pause, Resume, Lost, NoScript, Languages string

	NowHeading, HistoryHeading, TopHeading, ProbeHeading string
	Waiting, Summary                                     string

	DecisionsPerSec, Allowed, Denied, DeniedShare string
	Latency, P50, P99, P999                       string
	Connections, Keys, Memory                     string

	TableSummary, TableCaption, Minute, MinutesAgo, TableScroll string

	TopAsked, TopDenied, TopNone, TopNote, PerSec, Share string

	ProbeNote, Key, KeyHint, Database, PeriodSec, Probe                           string
	KeyMissing, KeyQuotes, KeyTooLong, DatabaseTooLarge                           string
	NotANumber, NumberTooLarge, NumberTooSmall, ZeroRate, TooSlow, FormErrors     string
	NextPasses, NextDenied, NoState, LevelOf, LeakRate, In, Now, Picture          string
	FunnelOf, Level, Leak, UntilFree, UntilEmpty, ReplyHeading, BucketDescription string
}

// textsFor returns the words in the language that a query asks for, or else a browser.
func textsFor(asked, acceptLanguage string) *texts {
	switch asked {
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

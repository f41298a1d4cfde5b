// Package words holds all text of the live page, in each of its languages, and formats its numbers. It has no
// state.
package words

import (
	"fmt"
	"time"
)

// Texts holds the text of the page in one language. Percent signs are fmt verbs.
type Texts struct {
	Lang, Other, OtherName string // HTML's lang; the other language
	Colon, Comma           string

	Title, Skip, Pause, Resume, Lost, NoScript, Languages, Copy, Copied string

	Host, Uptime, Version, InMemory, DaysHours, HoursMinutes, Minutes, Days, Hours, Seconds, UnderAMinute, NoPassword string
	RefusesHosts, OpenPage, UnencryptedPage                                                                           string

	NowHeading, HistoryHeading, TopHeading, Waiting, Summary, Of, ShareTitle, Range string
	WholeRange                                                                      string

	DecisionsPerSec, Allowed, Limited, LimitedShare, AllowedPerSec, LimitedPerSec, Latency, LatencyP99 string
	P50, P99, P999, Connections, Keys, Memory, Evicted, Refused, NotStored, EvictedKeys, RefusedKeys   string
	ErrorsPerSec, LastError, MemoryFull, MemoryEvicts, MemoryRefuses                                   string

	Durability, DurabilityOff, SyncEvery, SyncBeforeReplies, SyncBySystem, LoadingPart, FaultFor      string
	FaultSince, FaultForgets, FaultRefuses, Sync, LastSync, Written, WrittenPerSec, LogSize, Snapshot string
	LastSnapshot, Saving, SaveFailed, WaitingReplies, Faults, Never, Ago                              string

	Store, StoreConnecting, StoreAnswers, StorePartly, StoreDownFor, StoreDownSince, Stop, StoreErrors string
	StoreAllows, StoreDenies, StoreLocal, ByPolicy, StoreNote, StoreScroll, StoreServer, Circuit       string
	CircuitClosed, CircuitOpen, CircuitHalfOpen, Queued, InFlight, RoundTrip, DecidedHere              string
	FromKnown, FromPolicy                                                                              string

	Replication, Role, RoleLeader, RoleReplica, ReplicaNotice, ReplicaSyncing, LinkDownSince     string
	LinkDownForgets, TooFewReplicas, TooFewRefuses, TooFewGood, Replicas, Replica, ReplicaScroll string
	ReplicationLag, Lag, LagBytes, LeaderLink, LinkDown, LinkConnected, FullSync, ReplicaFollows string
	ReplicaWaits, StreamApplied, StreamGathered, Backlog, FullSyncsTaken, FullSyncsGiven         string
	PartialSyncs, ReplicasEvicted, LeaderChange, HandingOver, HandoverCount                      string

	TableSummary, TableCaption, Minute, TableScroll string

	FirstCall, KindsHeading, KindsScroll                     string
	DoorsHeading, DoorsScroll, Door, DoorRefused, DoorFailed string
	Command                                                  string

	LimitsHeading, LimitsScroll, Limit, Rules, Shadow string

	AtOnce, PerSecond, PerMinute, PerHour, PerDay, PerPeriod, Fixed, Sliding, Approximate string
	ASecond, AMinute, AnHour, ADay, AWeek, AMonth, AYear, InZone, SinceEpoch, FromStart   string
	DayOfMonth, Weekdays, Denied, Unlimited                                               string

	CapacityHeading, CapacityScroll, Resource, InUse, Maximum, TableMemory, ClientMemory, RefusalsNote string
	ConnectionsRefused, NewKeysRefused, ScriptsEnded, LogLinesLost                                     string

	ValueMemory, ValuesFull, ValuesEvicts, ValuesRefuses                                  string
	ValuesNote, EvictedValues, RefusedValues, IsValue, Number, TextLength, Bytes, Expires string
	NeverExpires                                                                          string

	RefusedHeading, RefusedNote, RefusedScroll, RefusedCalls, UnknownCommands string

	Actions
	Drawer
	Severity
}

// ForScript returns the texts of the page's script.
func (t *Texts) ForScript() map[string]string {
	return map[string]string{"pause": t.Pause, "resume": t.Resume, "copy": t.Copy, "copied": t.Copied, "paused": t.PausedTitle, "started": t.Started, "restarted": t.Restarted}
}

// Span formats a duration with at most two units.
func (t *Texts) Span(d time.Duration) string {
	days, hours, minutes := int(d/(24*time.Hour)), int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf(t.DaysHours, days, hours)
	case hours > 0:
		return fmt.Sprintf(t.HoursMinutes, hours, minutes)
	case minutes > 0:
		return fmt.Sprintf(t.Minutes, minutes)
	default:
		return t.UnderAMinute
	}
}

// Period formats a rule's period in whole days, hours or minutes, from two days, an hour or two minutes on.
func (t *Texts) Period(seconds int64) string {
	for _, unit := range []struct {
		seconds, from int64
		text          string
	}{{24 * 60 * 60, 2, t.Days}, {60 * 60, 1, t.Hours}, {60, 2, t.Minutes}} {
		if n := seconds / unit.seconds; n >= unit.from && seconds%unit.seconds == 0 {
			return fmt.Sprintf(unit.text, n)
		}
	}
	return fmt.Sprintf(t.Seconds, seconds)
}

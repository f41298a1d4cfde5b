package argument

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

const quotaUsage = "Usage: cl.quota <key> <max_count> SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|YEAR [<quantity>] [TZ <zone>] [START <start>] [EPOCH] [COUNTDENIED] [DEBIT]"

// quota returns the Request of CL.QUOTA.
func quota(calendars *calendar.Set) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) (err error) {
		const least, most = 4, 12
		if len(args) < least || len(args) > most {
			return reply.Cell(quotaUsage)
		}
		limit := limiter.Spec{Kind: limiter.Quota, Unit: funnel.WholeSeconds}
		if limit.Numbers[0], err = Number(args[2]); err != nil {
			return err
		}
		every, ok := calendar.EveryOf(args[3])
		if !ok {
			return reply.Cell(quotaUsage)
		}
		options, quantity := args[least:], int64(1)
		if len(options) > 0 && !beginsAsWord(options[0]) {
			if quantity, err = Number(options[0]); err != nil {
				return err
			}
			options = options[1:]
		}
		if err := quotaOptions(&limit, calendars, every, options); err != nil {
			return err
		}
		return Own(q, db, &limit, args[1], quantity)
	}
}

// beginsAsWord tells an option from a quantity.
func beginsAsWord(arg []byte) bool { return len(arg) > 0 && glob.Lower(arg[0]) >= 'a' }

// quotaOptions reads the options, in any order.
func quotaOptions(limit *limiter.Spec, calendars *calendar.Set, every calendar.Every, options [][]byte) (err error) {
	var zone []byte
	var start calendar.Start
	epoch := false
	for len(options) > 0 {
		used := 1
		switch option := options[0]; {
		case isDebit(option):
			limit.Flags |= limiter.Debit
		case glob.IsFolded(option, "countdenied"):
			limit.Flags |= limiter.CountDenied
		case glob.IsFolded(option, "epoch"):
			epoch = true
		case len(options) < 2 || len(options[1]) == 0:
			return reply.Cell(quotaUsage)
		case glob.IsFolded(option, "tz"):
			zone, used = options[1], 2
		case glob.IsFolded(option, "start"):
			if start, err = calendar.ParseStart(every, options[1]); err != nil {
				return reply.Cell(err.Error())
			}
			used = 2
		default:
			return reply.Cell(quotaUsage)
		}
		options = options[used:]
	}
	if limit.Calendar, err = calendars.Find(every, zone, start, epoch); err != nil {
		return reply.Cell(err.Error())
	}
	return nil
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two conductors bind one instance to two handles of a host, which the instance may
 * lose again, and a database that is restored. Each action has the name of an event of
 * tests/simulation.
 *
 * Options: -DOLD_PREPARE, -DOLD_CLAIM and -DOLD_RESTORE select the protocol in which a
 * failing prepare releases what another one holds, a claim compares nothing with the
 * allocation, and a handle is stored for a claim of a generation that is not higher.
 */
#define NONE 0
#define FREE 0
#define STARTED 1
#define BOUND 2
#define FAILED 3

byte state = FREE;         /* of the ARQs of the instance */
byte allocated = 2;        /* units in Placement; less than 2: the profile was edited */
byte lease;                /* of the bind job; grows when another conductor takes it */
byte generation;           /* of the claim, in the database */
byte owner[2];             /* of each handle in the database: 1 or 2 is an instance */
byte stored[2];            /* in the journal of the agent */
byte stored_generation[2];
bool prepared[2];          /* on the host */
bool dirty[2];             /* data of an earlier instance */
bool is_preparing;         /* a call of prepare has the claim */
byte released;             /* generation of the last release */
bool restored;             /* the database is older than the host */

/* A handle that an instance gets is its own, clean, and is paid for. */
#define is_sound (state != BOUND || restored || \
    (prepared[0] && prepared[1] && stored[0] == owner[0] && stored[1] == owner[1]))

inline release_handle(h) {
    prepared[h] = false; stored[h] = NONE; stored_generation[h] = 0
}

/* A call of prepare: both handles, one after the other, each of which may fail. */
proctype Prepare(byte number; byte claim; chan answer) {
    byte h = 0;
    bool had[2];
    bool accepted = false;
    atomic {
#ifdef OLD_PREPARE
        accepted = true;
#else
        accepted = (!is_preparing && claim > released);
        if :: accepted -> is_preparing = true :: else fi;
#endif
        if
        :: accepted ->
            stored[0] = 1; stored[1] = 1;
            stored_generation[0] = claim; stored_generation[1] = claim;
#ifndef OLD_PREPARE
            had[0] = prepared[0]; had[1] = prepared[1];
#endif
        :: else
        fi
    }
    if
    :: !accepted -> answer ! number, 0              /* busy: the job is postponed */
    :: else ->
        do
        :: h < 2 ->
            if
            :: atomic { true -> prepared[h] = true; h++ }        /* prepare */
            :: atomic {                                          /* fail_card */
                true ->
                if :: h == 1 && !had[0] -> release_handle(0) :: else fi;
                if :: !had[h] -> release_handle(h) :: else fi;
                h = 3
               }
            fi
        :: else -> break
        od;
        atomic {
#ifndef OLD_PREPARE
            is_preparing = false;
#endif
            /* The old answer says nothing about the handles. */
            if
            :: h == 3 -> answer ! number, 2
            :: else ->
#ifdef OLD_PREPARE
                answer ! number, 1
#else
                if
                :: prepared[0] && prepared[1] && stored[0] == 1 && stored[1] == 1 ->
                    answer ! number, 1
                :: else -> answer ! number, 2
                fi
#endif
            fi
        }
    fi
}

/* A conductor that runs the bind job; another one may take the job at any time. */
proctype Bind(byte mine) {
    chan answer = [2] of { byte, byte };
    byte result;
    byte calls = 0;
    bool has_claimed = false;

    atomic {                               /* claim */
        if
        :: lease == mine && state == STARTED ->
#ifdef OLD_CLAIM
            has_claimed = true;
#else
            has_claimed = (allocated == 2);
#endif
            if
            :: has_claimed ->
                assert(!dirty[0] && !dirty[1]);
                if
                :: owner[0] == NONE ->
                    generation++; owner[0] = 1; owner[1] = 1
                :: else
                fi
            :: else -> state = FAILED
            fi
        :: else
        fi
    }
    do
    :: has_claimed && calls < 3 - mine ->
        calls++; run Prepare(calls, generation, answer);
        if
        :: answer ?? eval(calls), result   /* the answer arrives */
        :: true -> result = 0              /* lose_messages, slow cards: repeat */
        fi;
        if
        :: atomic { result == 1 && lease == mine && state == STARTED ->
            state = BOUND;
            assert(allocated == 2)         /* bound <= allocated */
           }; break
        :: atomic { result == 2 && lease == mine && state == STARTED ->
            state = FAILED
           }; break
        :: else
        fi
    :: else -> break
    od
}

/* Delete, release and clean, after the bind has ended. */
proctype Release() {
    atomic { (state == BOUND || state == FAILED) && !is_preparing ->
        state = FREE; dirty[0] = prepared[0]; dirty[1] = prepared[1] };
    atomic { released = generation; release_handle(0); release_handle(1) };
    atomic { dirty[0] = false; dirty[1] = false };           /* clean */
    atomic { owner[0] = NONE; owner[1] = NONE }
}

/* The database is restored, and another instance claims a handle that a guest uses. */
proctype Restore() {
    byte again;
    atomic {
        state == BOUND && prepared[0] && stored[0] == 1 ->
        restored = true; again = generation; owner[0] = 2
    };
    atomic {                                                 /* prepare, of the claim */
        if
        :: stored[0] == 1 && prepared[0] ->
#ifdef OLD_RESTORE
            stored[0] = 2;
#else
            if :: again > stored_generation[0] -> stored[0] = 2 :: else fi;
#endif
            assert(stored[0] != 2 || again > stored_generation[0])
        :: else
        fi
    }
}

init {
    atomic {
        if :: allocated = 1 :: allocated = 2 fi;
        state = STARTED; lease = 1;
        run Bind(1); run Bind(2)
    };
    if
    :: atomic { lease = 2 }                /* freeze_node, kill_conductor */
    :: true
    fi;
    if
    :: run Release()
    :: run Restore()
    :: true
    fi
}

/* Bound is true at each moment. */
ltl bound_is_true { [] is_sound }

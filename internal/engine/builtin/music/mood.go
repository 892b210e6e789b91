package music

// ensemble is a set of instruments, as General MIDI program numbers from 0. The
// pad and the second instrument may be noProgram, which means that there is
// none.
type ensemble struct {
	lead, chords, bass, pad int
	second                  int // plays the melody an octave lower in sections with many players
}

const noProgram = -1

// ensembles are the sets of instruments that can be chosen with any mood.
var ensembles = map[string]ensemble{
	"piano": {
		lead:   0,
		chords: 0,
		bass:   0,
		pad:    noProgram,
		second: noProgram,
	},
	"strings": {
		lead:   40,
		chords: 45,
		bass:   43,
		pad:    48,
		second: 42,
	},
	"guitar": {
		lead:   24,
		chords: 25,
		bass:   32,
		pad:    noProgram,
		second: noProgram,
	},
	"winds": {
		lead:   73,
		chords: 71,
		bass:   70,
		pad:    60,
		second: 71,
	},
	"bells": {
		lead:   10,
		chords: 11,
		bass:   12,
		pad:    88,
		second: noProgram,
	},
	"synth": {
		lead:   80,
		chords: 90,
		bass:   38,
		pad:    89,
		second: noProgram,
	},
}

// chordStyle is the way in which chords are played.
type chordStyle int

const (
	brokenChords chordStyle = iota // the notes are played one after the other
	struckChords                   // the notes are played together, in the mood's rhythm
	waltzChords                    // the notes are played together on all beats except the first
)

// bassStyle is the way in which the bass is played.
type bassStyle int

const (
	rootBass    bassStyle = iota // one long note per chord
	fifthBass                    // root and fifth of the chord alternately
	walkingBass                  // a note on each beat, leading to the root of the next chord
	drivingBass                  // the root of the chord in quavers
)

// drumLine is the pattern of one drum in a bar: a MIDI key and a letter for
// each semiquaver. X is a loud hit, x a normal one and o a soft one.
type drumLine struct {
	key     int
	pattern string
}

// metre has the rhythms of a mood for three or four beats per bar. Rhythms have
// a letter for each quaver or semiquaver: x begins a note, - continues it, . is
// a rest.
type metre struct {
	rhythms []string // possible rhythms of a bar of the melody
	pulse   chordStyle
	figure  string // order of the notes of a broken chord, or rhythm of a struck chord
	drums   []drumLine
}

// mood is a set of rules for composing tunes.
type mood struct {
	tempo  float64
	scales []string // possible scales, one of which the seed chooses
	favour string   // degrees of chords; progressions that contain them are more likely
	colour bool     // whether chords have sevenths
	short  bool     // whether notes of the melody are cut off early
	swing  float64  // position of the second quaver in a beat, from 0 to 1
	free   float64  // how much the tempo slows down at the end of a phrase, as a fraction of the tempo
	loud   int      // mean MIDI velocity
	loose  int      // random deviation of notes from their exact time, in ticks
	centre int      // MIDI pitch around which the melody moves
	stride bassStyle
	beat   float64 // loudness of the drums in dB relative to the melody
	metres map[int]metre
	beats  []int // possible numbers of beats per bar, which are keys of metres; the seed chooses one
	bands  []ensemble
}

// General MIDI drum keys.
const (
	kick, snare, clap             = 36, 38, 39
	lowTom, closedHat, midTom     = 41, 42, 47
	openHat, crash, ride          = 46, 49, 51
	tambourine, shaker            = 54, 82
	woodHigh, woodLow, triangle   = 76, 77, 81
	mutedTriangle, orchestralBass = 80, 35
)

var moods = map[string]mood{
	"calm": {
		tempo:  76,
		scales: []string{"major", "major", "pentatonic", "lydian"},
		favour: "46",
		colour: true,
		swing:  0.5,
		free:   0.05,
		loud:   66,
		loose:  9,
		centre: 72,
		stride: rootBass,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x---x---", "x---x-x-", "x-x-x---", "x-----x-", "x-xxx---"}, pulse: brokenChords, figure: "01212321"},
			3: {rhythms: []string{"x---x-", "x-x-x-", "x-----", "x--xx-"}, pulse: brokenChords, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   73,
				chords: 46,
				bass:   32,
				pad:    48,
				second: noProgram,
			},
			{
				lead:   0,
				chords: 0,
				bass:   32,
				pad:    89,
				second: noProgram,
			},
			{
				lead:   24,
				chords: 24,
				bass:   32,
				pad:    48,
				second: noProgram,
			},
		},
	},
	"happy": {
		tempo:  116,
		scales: []string{"major", "major", "pentatonic", "mixolydian"},
		favour: "45",
		swing:  0.5,
		free:   0,
		loud:   84,
		loose:  7,
		centre: 74,
		stride: fifthBass,
		beat:   -7,
		beats:  []int{4, 4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-xxx-x-", "x-x-xxx-", "xxx-x-x-", "x--xx-x-", "x-x-x-xx"}, pulse: struckChords, figure: "x.xx.xx.",
				drums: []drumLine{{kick, "x.......x......."}, {clap, "....o.......x..."}, {shaker, "o.x.o.x.o.x.o.x."}, {tambourine, "............o..."}}},
			3: {rhythms: []string{"x-x-x-", "x-xxx-", "x---xx", "x--xx-"}, pulse: waltzChords,
				drums: []drumLine{{kick, "x..........."}, {tambourine, "....o...o..."}, {shaker, "o.x.o.x.o.x."}}},
		},
		bands: []ensemble{
			{
				lead:   73,
				chords: 25,
				bass:   32,
				pad:    48,
				second: noProgram,
			},
			{
				lead:   71,
				chords: 24,
				bass:   32,
				pad:    48,
				second: noProgram,
			},
			{
				lead:   12,
				chords: 25,
				bass:   33,
				pad:    noProgram,
				second: 11,
			},
		},
	},
	"sad": {
		tempo:  66,
		scales: []string{"minor", "minor", "harmonic-minor", "dorian"},
		favour: "46",
		colour: true,
		swing:  0.5,
		free:   0.07,
		loud:   64,
		loose:  10,
		centre: 70,
		stride: rootBass,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-----xx", "x---x-x-", "x--xx---", "x-x-x---", "x-----x-"}, pulse: brokenChords, figure: "01232123"},
			3: {rhythms: []string{"x---x-", "x--xx-", "x-x-x-", "x-----"}, pulse: brokenChords, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   40,
				chords: 0,
				bass:   43,
				pad:    48,
				second: 42,
			},
			{
				lead:   68,
				chords: 46,
				bass:   42,
				pad:    48,
				second: noProgram,
			},
			{
				lead:   0,
				chords: 0,
				bass:   43,
				pad:    49,
				second: noProgram,
			},
		},
	},
	"heroic": {
		tempo:  108,
		scales: []string{"major", "mixolydian", "minor", "dorian"},
		favour: "1467",
		swing:  0.5,
		free:   0.02,
		loud:   96,
		loose:  6,
		centre: 70,
		stride: drivingBass,
		beat:   -5,
		beats:  []int{4},
		metres: map[int]metre{
			4: {rhythms: []string{"x---x--x", "x-----xxx---x---", "x--xx---", "x-x-x---", "x-----x-x-----x-"}, pulse: struckChords, figure: "x-xxx-x-x-xxx-x-",
				drums: []drumLine{{orchestralBass, "X.......x......."}, {lowTom, "x.....o.x...o.o."}, {snare, "....x..o....x.oo"}}},
		},
		bands: []ensemble{
			{
				lead:   56,
				chords: 48,
				bass:   43,
				pad:    61,
				second: 60,
			},
			{
				lead:   60,
				chords: 48,
				bass:   58,
				pad:    52,
				second: 57,
			},
		},
	},
	"mysterious": {
		tempo:  84,
		scales: []string{"harmonic-minor", "phrygian", "dorian"},
		favour: "26",
		colour: true,
		swing:  0.5,
		free:   0.04,
		loud:   68,
		loose:  9,
		centre: 69,
		stride: rootBass,
		beat:   -12,
		beats:  []int{4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"..x-x---", "x--x----", "x---xxx-", "x-----xx", "xxx-----"}, pulse: brokenChords, figure: "03121312",
				drums: []drumLine{{lowTom, "o..............."}, {mutedTriangle, "......o......o.."}, {ride, "........o......."}}},
			3: {rhythms: []string{"x--x--", "..x-x-", "x---xx", "x-----"}, pulse: brokenChords, figure: "031213",
				drums: []drumLine{{lowTom, "o..........."}, {mutedTriangle, "......o....."}}},
		},
		bands: []ensemble{
			{
				lead:   71,
				chords: 46,
				bass:   43,
				pad:    49,
				second: noProgram,
			},
			{
				lead:   8,
				chords: 11,
				bass:   32,
				pad:    91,
				second: noProgram,
			},
			{
				lead:   69,
				chords: 46,
				bass:   42,
				pad:    52,
				second: noProgram,
			},
		},
	},
	"playful": {
		tempo:  126,
		scales: []string{"major", "mixolydian", "lydian", "pentatonic"},
		favour: "25",
		short:  true,
		swing:  0.6,
		free:   0,
		loud:   82,
		loose:  6,
		centre: 72,
		stride: walkingBass,
		beat:   -8,
		beats:  []int{4, 4, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"xx.xx.x.", "x.x.xxx.", "xx.x.xx.", "xxx.x.x.", "x.xx.xx."}, pulse: struckChords, figure: "..x...x.",
				drums: []drumLine{{woodHigh, "x.....o.....o..."}, {woodLow, "....x.......x..."}, {shaker, "..o...o...o...o."}, {triangle, "............o..."}}},
			3: {rhythms: []string{"x.xxx.", "xx.xx.", "x.x.xx", "xxx.x."}, pulse: waltzChords,
				drums: []drumLine{{woodHigh, "x..........."}, {woodLow, "....x...x..."}, {triangle, "........o..."}}},
		},
		bands: []ensemble{
			{
				lead:   71,
				chords: 45,
				bass:   32,
				pad:    noProgram,
				second: 70,
			},
			{
				lead:   13,
				chords: 45,
				bass:   70,
				pad:    noProgram,
				second: noProgram,
			},
			{
				lead:   72,
				chords: 24,
				bass:   32,
				pad:    noProgram,
				second: 68,
			},
		},
	},
	"dreamy": {
		tempo:  88,
		scales: []string{"lydian", "major", "pentatonic", "dorian"},
		favour: "236",
		colour: true,
		swing:  0.5,
		free:   0.05,
		loud:   64,
		loose:  11,
		centre: 76,
		stride: rootBass,
		beats:  []int{4, 3, 3},
		metres: map[int]metre{
			4: {rhythms: []string{"x-x-x---", "x---x-x-", "x-xxx---", "x-x-x-x-", "..x-x-x-"}, pulse: brokenChords, figure: "0123210123212321"},
			3: {rhythms: []string{"x-x-x-", "x---x-", "..x-x-", "x-xxx-"}, pulse: brokenChords, figure: "012321"},
		},
		bands: []ensemble{
			{
				lead:   10,
				chords: 46,
				bass:   32,
				pad:    89,
				second: noProgram,
			},
			{
				lead:   11,
				chords: 88,
				bass:   32,
				pad:    91,
				second: noProgram,
			},
			{
				lead:   8,
				chords: 4,
				bass:   35,
				pad:    89,
				second: noProgram,
			},
		},
	},
	"energetic": {
		tempo:  138,
		scales: []string{"minor", "dorian", "mixolydian", "pentatonic-minor"},
		favour: "67",
		swing:  0.5,
		free:   0,
		loud:   94,
		loose:  4,
		centre: 72,
		stride: drivingBass,
		beat:   -2,
		beats:  []int{4},
		metres: map[int]metre{
			4: {rhythms: []string{"x-xx-xx-", "xx-xx-x-", "x-x-xxx-", "x--x--x-", "x-xxx-xx"}, pulse: struckChords, figure: "x--x--x-",
				drums: []drumLine{{kick, "X.....x.x......."}, {snare, "....X.......X..."}, {closedHat, "x.o.x.o.x.o.x.o."}, {openHat, "..............o."}}},
		},
		bands: []ensemble{
			{
				lead:   81,
				chords: 27,
				bass:   34,
				pad:    90,
				second: noProgram,
			},
			{
				lead:   80,
				chords: 62,
				bass:   38,
				pad:    89,
				second: noProgram,
			},
			{
				lead:   65,
				chords: 16,
				bass:   33,
				pad:    62,
				second: 66,
			},
		},
	},
}

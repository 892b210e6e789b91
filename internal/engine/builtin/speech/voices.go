package speech

// languages are what a manifest can offer, and the voice file that eSpeak NG
// has for each. It is the file's name and not the language's: with the latter,
// 1.51 drops the variant without a word for en-gb and others.
//
// Japanese is not among them: eSpeak NG reads kana but no kanji. Chinese needs
// the pinyin voice; the other one reads the tones as English numbers.
var languages = map[string]string{
	"ar":     "ar",
	"ca":     "ca",
	"cs":     "cs",
	"da":     "da",
	"de":     "de",
	"el":     "el",
	"en-gb":  "en",
	"en-us":  "en-us",
	"es":     "es",
	"es-419": "es-419",
	"fi":     "fi",
	"fr":     "fr",
	"hi":     "hi",
	"hu":     "hu",
	"it":     "it",
	"ko":     "ko",
	"nb":     "nb",
	"nl":     "nl",
	"pl":     "pl",
	"pt":     "pt",
	"pt-br":  "pt-br",
	"ro":     "ro",
	"ru":     "ru",
	"sv":     "sv",
	"tr":     "tr",
	"uk":     "uk",
	"zh":     "cmn-latn-pinyin",
}

// voices are variants that change any of them.
var voices = map[string]string{
	"man":          "",
	"deep-man":     "+m7",
	"soft-man":     "+m8",
	"old-man":      "+grandpa",
	"woman":        "+f2",
	"bright-woman": "+belinda",
	"soft-woman":   "+f5",
	"old-woman":    "+grandma",
	"whisper":      "+whisper",
	"robot":        "+klatt4",
}

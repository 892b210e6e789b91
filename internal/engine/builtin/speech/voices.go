package speech

// languages maps the languages that a manifest can offer to eSpeak NG's voice
// files. File names are used instead of language names, because version 1.51
// ignores the variant for some language names, such as en-gb.
//
// Japanese is missing because eSpeak NG cannot read kanji, only kana. Chinese
// uses the pinyin voice, because the other Chinese voice reads the tones as
// English numbers.
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

// voices maps the voices that a manifest can offer to eSpeak NG's voice
// variants, which work with any language.
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

"""Antonyms of WordNet 3.0: single words that occur three times or more in its sense-tagged texts.

They differ by more than a negating prefix. scripts/tooling/antonyms.py of commit 4cf7198 computed them.

WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.
"""

PAIRS = """
abolish/establish above/below absence/presence absent/present absolute/relative absorb/emit abstract/concrete
accept/refuse accept/reject acceptance/rejection acquaintance/stranger act/refrain active/passive active/quiet
actual/potential acute/chronic add/subtract admit/deny admit/exclude admit/reject adopted/native advance/back
advance/recede advance/retreat aged/young agitate/calm ahead/back alive/dead all/no all/some allow/deny
alternate/opposite amateur/professional ample/meager analysis/synthesis analytic/synthetic analyze/synthesize
anode/cathode answer/question anterior/posterior anti/pro appreciation/depreciation arrive/leave artificial/natural
ascend/descend asleep/awake assent/dissent attach/detach attached/detached attack/defend attend/miss attract/repel
attraction/repulsion aunt/uncle avoid/confront away/home back/front back/veer backward/forward bad/good badly/well
badness/goodness bare/covered bear/bull beautiful/ugly begin/end beginning/end beginning/ending beginning/middle
bend/straighten best/worst better/worse big/little big/small birth/death black/white bless/curse blur/focus
boil/freeze bold/timid bore/interest borrow/lend bottom/side bottom/top bounce/clear bound/free boy/girl brave/timid
break/keep break/make break/repair breathing/breathless bright/dull brother/sister busy/idle buy/sell calm/stormy
capitalism/socialism careful/careless cash/credit center/left center/right central/peripheral cerebral/emotional
change/stay cheap/expensive cheer/complain cheerful/depressing child/parent civilian/military claim/forfeit
clarity/obscurity clean/dirty clear/opaque close/distant close/open closed/open closing/opening cold/hot come/go
comedy/tragedy common/individual compact/loose competition/cooperation complex/simple complexity/simplicity
complicate/simplify compound/simple concentration/dilution concentration/distribution conception/misconception
confine/free conservative/liberal conserve/waste consonant/vowel constructive/destructive continual/sporadic
contract/expand conventional/nuclear cool/heat cool/warm correct/falsify criticize/praise cry/laugh curved/straight
danger/safety dangerous/safe dark/light daughter/son day/night dead/live dead/living deaf/hearing decline/improvement
decrease/increase deep/shallow defeat/victory defend/prosecute defense/offense defense/prosecution delay/rush
delicate/rugged demand/supply depart/stay deposit/withdraw deprive/enrich despair/hope differ/equal
difference/sameness different/same differentiate/integrate difficult/easy difficulty/ease direct/inverse
discharge/enlist discourage/encourage dislike/liking dissuade/persuade divide/multiply divide/unite docile/stubborn
domestic/foreign dominant/subordinate double/single down/up downgrade/upgrade downstairs/upstairs downward/upward
dramatic/lyric dry/sweet dry/wet dull/lively dull/sharp dull/sharpen early/late early/middle east/west eastern/western
empirical/theoretical empirically/theoretically employee/employer empty/fill empty/full end/middle enforce/exempt
enjoy/suffer erase/record even/odd ever/never evil/good exclude/include explicit/implicit export/import express/local
exterior/interior external/internal extraordinary/ordinary fail/manage fail/pass fail/succeed failure/success
fair/foul fall/rise false/true familiar/strange fancy/plain far/near fast/slow fat/thin father/mother feed/starve
female/male feminine/masculine few/many fewer/more figurative/literal figure/ground find/lose finish/start fire/hire
first/last first/second flat/natural flat/sharp flatten/sharpen float/sink foe/friend follow/precede follower/leader
following/leading folly/wisdom foolish/wise foot/head forbid/permit foreign/native forget/mind forget/remember
former/latter forward/reverse found/lost free/obstruct friendly/hostile frivolous/serious front/rear
full-time/part-time full/thin functional/organic future/past future/present gain/loss gain/reduce gather/spread
general/local general/particular general/specific generalist/specialist generalize/specify generally/specifically
give/take glad/sad gradual/steep gradual/sudden greater/lesser green/ripe gross/net guilt/innocence guilty/innocent
half/whole happily/sadly hard/soft harden/soften hate/love have/lack have/miss head/rear head/tail heaven/hell
heavily/lightly heavy/light here/there heterogeneous/homogeneous hide/show high/low hit/miss hollow/solid
hopeful/hopeless hopefully/hopelessly horizontal/inclined horizontal/vertical host/parasite humble/proud
humility/pride husband/wife idle/run idle/work ignore/know ignore/notice ill/well inclined/vertical inferior/superior
inner/outer inside/outside intelligence/stupidity intense/mild intermediate/terminal international/national
inward/outward issue/recall joint/separate joy/sorrow junior/senior keep/lose king/queen lady/lord large/small
late/middle lean/rich least/most left/right less/more let/prevent level/raise lie/sit lie/stand linger/rush
liquid/solid little/much local/national location/studio long/short loose/tight loosen/stiffen lose/profit lose/win
loud/soft loudly/softly lower/raise major/minor majority/minority man/woman maximize/minimize maximum/minimum
meaningful/meaningless mental/physical move/stay moving/still multiple/single naive/sophisticated narrow/wide
narrow/widen natural/sharp natural/supernatural negative/neutral negative/positive neutral/positive new/old new/worn
no/some no/yes noisy/quiet north/south northern/southern numerical/verbal objective/subjective obscurity/prominence
off/on often/rarely old/young open/shut other/same out/safe overhead/surface pain/pleasure particular/universal
partly/wholly passing/running past/present peace/war penalty/reward permanently/temporarily poor/rich poverty/wealth
precede/succeed preceding/succeeding preparation/resolution primary/secondary private/public privately/publicly
profound/superficial pull/push qualitative/quantitative quickly/slowly reassure/worry religious/secular
resist/surrender ride/walk right/wrong rise/set rough/smooth roughness/smoothness round/square running/standing
rural/urban seated/standing separation/union sharpen/soften short/tall shout/whisper shrink/stretch side/top
silence/sound sink/source sit/stand sleep/wake smart/stupid sour/sweet sparkling/still spoken/written stand/yield
start/stop stifle/stimulate strength/weakness strengthen/weaken strong/weak succumb/survive tender/tough thick/thin
thicken/thin thoughtful/thoughtless useful/useless wane/wax
"""

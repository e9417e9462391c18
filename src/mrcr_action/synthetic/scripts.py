"""Small grammars for pieces in other scripts than Latin: Greek, Cyrillic, Arabic, Devanagari, CJK.

Each language has nouns of one gender and number with adjectives and verbs that agree with them,
so that whatever is drawn makes a sentence. The topic stays as the request has it, between marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.synthetic.blocks import Writer, paragraph, refrain, sentence, stanza
from mrcr_action.synthetic.forms import Form
from mrcr_action.synthetic.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Script:
    """A language in its script, and how to write pieces in it."""

    name: str
    percent: int
    """Characters that it needs for what takes 100 in English."""
    joint: str
    """What stands between two sentences."""
    rules: Mapping[str, Sequence[str]]
    """Choices for each name in braces, as in `mrcr_action.synthetic.sentences.RULES`."""
    form: Form


def _list(writer: Writer) -> str:
    return "\n".join(
        f"- **{writer.one('noun')}** {writer.one('emoji')} {line}"
        for line in writer.some("sentence", 2, 4)
    )


def _quote(writer: Writer) -> str:
    return f"> {sentence(writer)}\n>\n> — {writer.one('name')}"


def _heading(writer: Writer) -> str:
    mark = writer.dice.pick(("## ", "### ", "#### "))
    return mark + writer.fill("{adj}{gap}{noun}") + "\n\n" + sentence(writer)


_FORM = Form(
    ("# {topic} · {noun}", "**{adj}{gap}{noun}** {emoji}", "*{name}, {time}*", "{sentence}"),
    (paragraph, paragraph, paragraph, stanza, refrain, _list, _quote, _heading),
    ("*{sentence}* {emoji}", "— {name}", "{emoji} {noun}, {noun}", "**{topic}** {emoji}"),
    percent=100,
)


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


def _script(label: str, percent: int, *, gap: str = " ", joint: str = " ", **lists: str) -> Script:
    """A script of phrases parted by ``|``; sentences serve as lines and as short pieces too."""
    rules = {rule: _phrases(text) for rule, text in lists.items()}
    rules |= {"gap": (gap,), "emoji": WORDS["emoji"], "line": rules["sentence"]}
    rules["short"] = rules["sentence"][:1]
    return Script(name=label, percent=percent, joint=joint, rules=rules, form=_FORM)


SCRIPTS = (
    _script(
        "Greek",
        100,
        noun="φανάρι|παράθυρο|ποτάμι|καράβι|σπίτι|βιβλίο|δέντρο|βουνό|ρολόι|κλειδί|γράμμα|τραγούδι|"
        "βιολί|τραπέζι|ποδήλατο|χωριό|λιμάνι|πουλί|καπέλο|τρένο|μπαλκόνι|νησί|κύμα|σύννεφο|άλογο",
        adj="μικρό|παλιό|κρύο|ζεστό|άδειο|κόκκινο|γαλάζιο|ήσυχο|κουρασμένο|χρυσό|ξεχασμένο|"
        "παράξενο|"
        "σκοτεινό|φωτεινό|ψηλό|στραβό|γενναίο|χαρούμενο|λυπημένο|αργό",
        did="έλαμψε|χάθηκε|γέλασε|περίμενε|τραγούδησε|χόρεψε|σώπασε|έτρεξε|γύρισε|κοιμήθηκε|"
        "ξύπνησε|"
        "δίστασε|έφυγε|έπεσε|μεγάλωσε",
        saw="είδε|βρήκε|ζωγράφισε|έχασε|θυμήθηκε|αγάπησε|έκρυψε|πούλησε|άκουσε|περίμενε|κράτησε",
        place="στο λιμάνι|κάτω από τη γέφυρα|πίσω από τον φούρνο|στην πλατεία|πάνω στη στέγη|"
        "δίπλα στη θάλασσα|στην άκρη του χάρτη|μέσα στο πηγάδι|στον κήπο|στον σταθμό|"
        "έξω από την πόλη",
        time="χθες το βράδυ|πριν από το πρωινό|την άνοιξη|μετά τη βροχή|τα μεσάνυχτα|κάθε Τρίτη|"
        "μια φορά|στις {n} Μαΐου|όλο τον χειμώνα|λίγο αργότερα",
        name="Ελένη|Νίκος|Θάλεια|Ορέστης|Δανάη|Πέτρος|Ιάσονας|Μυρτώ|Κλειώ|Φοίβος|Ζωή|Άρης",
        sentence="Το {adj} {noun} {did} {place}.|{Time}, «{topic}»: έτσι έγραφε το {noun}.|"
        "{Name} {saw} ένα {adj} {noun} {time}.|Κανένα {noun} δεν {did} {place}.|"
        "Ποιος {saw} το {noun} και το {adj} {noun};|{Place} {did} το {noun}, {adj} και {adj}.|"
        "«{topic}», είπε {name}, και το {noun} {did}.|Ήταν {adj}, ήταν {adj}, ήταν {noun}!|"
        "{N} φορές {saw} {name} το {noun} {place}.|Χωρίς {noun}, {name} δεν {saw} τίποτα.",
    ),
    _script(
        "Cyrillic",
        100,
        noun="фонарь|мост|сад|чайник|корабль|дом|поезд|город|ключ|рояль|остров|ветер|колодец|снег|"
        "шкаф|маяк|костёр|туман|пирог|зонт|порог|лес|берег|театр|трамвай|голос",
        adj="старый|тихий|медный|пустой|синий|усталый|забытый|смелый|тёплый|холодный|кривой|"
        "золотой|"
        "сонный|странный|высокий|ржавый|весёлый|грустный|медленный|упрямый",
        did="сиял|исчез|смеялся|ждал|пел|молчал|скрипел|вернулся|дрожал|уснул|качался|удивился|"
        "упал|"
        "остался|растаял",
        saw="увидел|нашёл|нарисовал|потерял|вспомнил|полюбил|спрятал|продал|починил|измерил|описал",
        place="за пекарней|под мостом|у реки|на крыше|в третьем ящике|на краю карты|за углом|"
        "посреди площади|в саду|на вокзале|в тумане|над городом",
        time="вчера вечером|до завтрака|весной|после дождя|в полночь|каждый вторник|однажды|"
        "{n} мая|всю зиму|чуть позже|на рассвете",
        name="Иван|Борис|Фёдор|Матвей|Платон|Юрий|Лев|Егор|Захар|Тихон|Марк|Глеб",
        sentence="{Adj} {noun} {did} {place}.|{Time} {name} {saw} {adj} {noun}.|"
        "«{topic}», — сказал {name}, и {noun} {did}.|Ни один {noun} не {did} {place}.|"
        "Кто {saw} {noun}, кто {saw} {adj} {noun}?|{Place} {did} {noun}, {adj} и {adj}.|"
        "{N} раз {name} {saw} этот {noun} {time}.|Был он {adj}, был он {adj}, был он {noun}!|"
        "О «{topic}» {noun} ничего не знал.|{Name} {did}. Потом {did} и {noun}.",
    ),
    _script(
        "Arabic",
        85,
        noun="الفانوس|البيت|الجسر|القمر|النهر|الكتاب|القطار|البستان|المفتاح|الجبل|البحر|الباب|"
        "الطائر|الحصان|المطر|السوق|القارب|المسرح|الشباك|الصندوق|الدرج|الميناء",
        adj="القديم|الهادئ|الصغير|البعيد|الأزرق|المنسي|الشجاع|الدافئ|البارد|الذهبي|النائم|الغريب|"
        "الطويل|السعيد|الحزين|البطيء|العنيد",
        did="لمع|اختفى|ضحك|انتظر|غنى|سكت|رقص|عاد|نام|تردد|ارتجف|سقط|رحل|استيقظ",
        saw="رأى|وجد|رسم|نسي|تذكر|أحب|أخفى|باع|أصلح|وصف",
        place="خلف المخبز|تحت الجسر|قرب النهر|فوق السطح|في الحديقة|عند المحطة|في طرف الخريطة|"
        "وسط الساحة|وراء التل|على الشاطئ|داخل البئر",
        time="مساء أمس|قبل الفطور|في الربيع|بعد المطر|عند منتصف الليل|كل ثلاثاء|ذات مرة|"
        "في {n} مايو|طوال الشتاء|عند الفجر",
        name="كريم|يوسف|سامي|نبيل|حسن|عمر|خالد|طارق|زياد|ماجد|رامي",
        sentence="{did} {noun} {adj} {place}.|{time} {saw} {name} {noun} {adj}.|"
        "قال {name}: «{topic}»، ثم {did} {noun}.|ما {did} {noun} {place} قط.|"
        "من {saw} {noun}؟ ومن {saw} {noun} {adj}؟|{place} {did} {noun} {adj} {time}.|"
        "{n} مرات {saw} {name} {noun} {place}.|«{topic}»: هكذا كتب {name} {time}.|"
        "{did} {name}، و{did} {noun} {adj}.",
    ),
    _script(
        "Devanagari",
        65,
        noun="दीपक|घर|पुल|पहाड़|पेड़|बाज़ार|जहाज़|झरना|दरवाज़ा|तारा|घोड़ा|संदूक|बगीचा|रास्ता|"
        "चूल्हा|कुआँ|पर्दा|बादल|गाँव|मेला|चाँद",
        adj="पुराना|छोटा|नीला|सुनहरा|अकेला|गहरा|भूला हुआ|ठंडा|प्यारा|टेढ़ा|ऊँचा|अनोखा|सोया हुआ|फीका|मीठा|सूना",
        did="चमका|हँसा|रुका|लौटा|सोया|काँपा|नाचा|जागा|गिरा|पिघला|मुस्कुराया|झिझका|डूबा",
        saw="देखा|खोजा|छिपाया|बेचा|सुधारा|नापा|याद किया|पसंद किया|सजाया",
        place="नदी के पास|छत पर|पुल के नीचे|दुकान के पीछे|बगीचे में|स्टेशन पर|मैदान के बीच|"
        "पहाड़ी के पार|कुएँ के भीतर|शहर के बाहर",
        time="कल शाम|नाश्ते से पहले|वसंत में|बारिश के बाद|आधी रात को|हर मंगलवार|एक बार|"
        "{n} मई को|पूरी सर्दी|भोर में",
        name="राम|अर्जुन|मोहन|विजय|किरण|सूरज|गोपाल|रवि|आनंद|दीप",
        sentence="{adj} {noun} {place} {did}।|{time} {name} ने {adj} {noun} {saw}।|"
        "“{topic},” {name} ने कहा, और {noun} {did}।|{place} कोई {noun} नहीं {did}।|"
        "किसने {noun} {saw}, किसने {adj} {noun} {saw}?|{n} बार {name} ने वह {noun} {saw}।|"
        "{noun} {adj} था, {noun} {adj} था!|{place}, {time}, {noun} {did}।|"
        "“{topic}” — यही {noun} पर लिखा था।",
    ),
    _script(
        "Han",
        32,
        gap="",
        joint="",
        noun="灯笼|窗户|河流|小船|房子|书本|大树|山峰|时钟|钥匙|信件|歌声|提琴|桌子|村庄|港口|飞鸟|"
        "帽子|火车|岛屿|云朵|白马|茶壶|雨伞|石桥|剧院",
        adj="古老的|安静的|小小的|遥远的|蓝色的|被遗忘的|勇敢的|温暖的|寒冷的|金色的|沉睡的|奇怪的|"
        "高高的|快乐的|忧伤的|缓慢的|固执的",
        did="发光|消失了|笑了|等待着|歌唱|沉默不语|跳舞|回来了|睡着了|犹豫了|颤抖着|落下了|醒来了",
        saw="看见了|找到了|画下了|丢失了|想起了|爱上了|藏起了|卖掉了|修好了|描写了",
        place="在面包店后面|在桥下|在河边|在屋顶上|在花园里|在车站|在地图的边缘|在广场中央|"
        "在山那边|"
        "在海岸上|在井底",
        time="昨天傍晚|早餐之前|春天|雨后|半夜|每个星期二|有一次|五月{n}日|整个冬天|黎明时分",
        name="小明|阿梅|老王|李婷|张伟|陈静|阿宝|林月|赵青|孙岚",
        sentence="{adj}{noun}{place}{did}。|{time},{name}{saw}{adj}{noun}。|"
        "“{topic},”{name}说,于是{noun}{did}。|没有一个{noun}{place}{did}。|"
        "谁{saw}{noun}?谁又{saw}{adj}{noun}?|{name}{n}次{saw}那{adj}{noun}。|"
        "{place},{noun}{did},{noun}也{did}!|关于“{topic}”,{noun}一无所知。|"
        "{time}{did}的,是{adj}{noun}。",
    ),
    _script(
        "Kana",
        45,
        gap="",
        joint="",
        noun="ランプ|窓|川|小舟|家|本|木|山|時計|鍵|手紙|歌|バイオリン|机|村|港|鳥|帽子|汽車|島|雲|"
        "馬|やかん|傘|橋|劇場|ねこ",
        adj="古い|静かな|小さな|遠い|青い|忘れられた|勇敢な|暖かい|冷たい|金色の|眠たい|不思議な|"
        "高い|楽しい|悲しい|ゆっくりした|頑固な",
        did="光った|消えた|笑った|待っていた|歌った|黙っていた|踊った|帰ってきた|眠った|ためらった|"
        "震えた|落ちた|目を覚ました",
        saw="見た|見つけた|描いた|なくした|思い出した|愛した|隠した|売った|直した|数えた",
        place="パン屋の裏で|橋の下で|川のそばで|屋根の上で|庭で|駅で|地図の端で|広場の真ん中で|"
        "丘の向こうで|浜辺で|井戸の底で",
        time="昨日の夕方|朝ごはんの前に|春に|雨の後で|真夜中に|火曜日ごとに|ある時|五月{n}日に|"
        "冬の間ずっと|夜明けに",
        name="ゆき|はると|さくら|けんじ|みお|そうた|あかり|りく|ひなた|つばさ",
        sentence="{adj}{noun}が{place}{did}。|{time}、{name}は{adj}{noun}を{saw}。|"
        "「{topic}」と{name}が言うと、{noun}が{did}。|{place}{did}のは{noun}だけだった。|"
        "だれが{noun}を{saw}のか。だれが{adj}{noun}を{saw}のか。|"
        "{name}は{n}回も{adj}{noun}を{saw}。|{noun}が{did}、そして{noun}も{did}!|"
        "「{topic}」のことを、{noun}は知らない。|{time}{did}のは、{adj}{noun}。",
    ),
    _script(
        "Hangul",
        50,
        noun="등불|창문|강물|돛단배|집|책|나무|산|시계|열쇠|편지|노래|바이올린|책상|마을|항구|새|"
        "모자|"
        "기차|섬|구름|말|주전자|우산|다리|극장",
        adj="오래된|조용한|작은|먼|푸른|잊혀진|용감한|따뜻한|차가운|금빛|졸린|이상한|높은|즐거운|"
        "슬픈|"
        "느린|고집스러운",
        did="빛났다|사라졌다|웃었다|기다렸다|노래했다|침묵했다|춤추었다|돌아왔다|잠들었다|"
        "망설였다|떨었다|"
        "떨어졌다|깨어났다",
        saw="보았다|찾았다|그렸다|잃었다|기억했다|사랑했다|숨겼다|팔았다|고쳤다|세었다",
        place="빵집 뒤에서|다리 아래에서|강가에서|지붕 위에서|정원에서|역에서|지도 끝에서|"
        "광장 한가운데서|"
        "언덕 너머에서|바닷가에서|우물 속에서",
        time="어제저녁|아침 식사 전에|봄에|비 온 뒤에|한밤중에|화요일마다|언젠가|5월 {n}일에|"
        "겨울 내내|"
        "새벽에",
        name="민준|서연|지호|하은|도윤|수아|예준|지우|시우|다은",
        sentence="{adj} {noun}, {place} {did}.|{time} {name}, {adj} {noun} 하나 {saw}.|"
        "“{topic},” {name}의 말에 {noun} 하나 {did}.|{place} {did}. 그 {adj} {noun}!|"
        "누구의 {noun}? 누구의 {adj} {noun}?|{name}, {n}번이나 그 {noun} {saw}.|"
        "{noun} 하나 {did}, 또 {noun} 하나 {did}.|“{topic}”, {time} {name}의 {noun}.|"
        "{time}, {place}, {adj} {noun}.",
    ),
)
"""The scripts that pieces may be written in when other than Latin ones are asked for."""

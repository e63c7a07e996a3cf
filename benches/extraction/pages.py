"""Pages of about 100 KB for a benchmark without labelled pages: articles, listings and threads in
English and Chinese, with the markup that surrounds a text on the web: scripts, styles, menus,
pictures, cards, attributes of frameworks, markup that is not closed.

The text is made of common words in no order that makes sense. That is enough for the time that an
extractor takes, and not for how well it works.
"""

import json
import random

ENGLISH = """
the of and to in is was for that on with as it by at from this are or an be which has had not but
they their were more about when who will would there been one all can into other some than only
year people city water school work house company market river council season report research team
health weather building story history music village garden history engine winter summer question
answer morning evening teacher student farmer driver office station bridge valley forest island
opened moved found began became remained improved reached described measured carried returned
announced expected planned followed included produced offered turned supported changed
new old small large early late local public common open recent long short great early several
""".split()
CHINESE = """
的 了 在 是 我们 他们 这个 一个 可以 没有 以及 因为 所以 如果 但是 已经 进行 通过 对于 关于
城市 经济 发展 学校 学生 老师 市场 公司 问题 方法 研究 历史 文化 音乐 天气 河流 建筑 乡村 花园 农民
报告 会议 计划 工作 生活 社会 科学 技术 健康 医院 车站 桥梁 森林 岛屿 早上 晚上 冬天 夏天
提高 改善 开始 成为 发现 描述 测量 返回 宣布 期待 包括 生产 支持 改变 参加 完成 说明
""".split()


class Maker:
    """Makes the pages of one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.chinese = seed % 4 == 3
        self.address = f"https://www.site{seed % 40}.example/{seed}/"

    def words(self, least, most):
        count = self.random.randint(least, most)
        # Squaring makes the first words common, as in any language.
        some = CHINESE if self.chinese else ENGLISH
        chosen = [some[int(self.random.random() ** 2 * len(some))] for _ in range(count)]
        return ("" if self.chinese else " ").join(chosen)

    def sentence(self):
        end, comma = ("。", "，") if self.chinese else (". ", ", ")
        text = comma.join(self.words(4, 9) for _ in range(self.random.randint(1, 3)))
        return text[:1].upper() + text[1:] + end

    def link(self, least=1, most=4, classes="link"):
        path = f"{self.random.randrange(10**6)}/{self.random.randrange(10**6)}.html"
        return (
            f'<a href="/{path}?ref=page&amp;pos={self.random.randrange(90)}" class="{classes}"'
            f' data-track="click" data-id="{self.random.getrandbits(48):x}">{self.words(least, most)}</a>'
        )

    def paragraph(self):
        parts = []
        for _ in range(self.random.randint(3, 7)):
            text = self.sentence()
            chance = self.random.random()
            if chance < 0.15:
                text = f"{self.link()} {text}"
            elif chance < 0.25:
                text = f"<strong>{self.words(1, 3)}</strong> {text}"
            elif chance < 0.3:
                text = text.replace(" ", "&nbsp;", 1)
            parts.append(text)
        end = "" if self.random.random() < 0.1 else "</p>"
        return f'<p class="body-text css-{self.random.getrandbits(24):06x}">{"".join(parts)}{end}\n'

    def image(self):
        name = f"/media/{self.random.getrandbits(64):x}"
        sizes = ", ".join(f"{name}-{width}.jpg {width}w" for width in (320, 640, 960, 1280))
        return (
            f'<img loading="lazy" src="{name}.jpg" srcset="{sizes}" sizes="(min-width: 60em) 40vw,'
            f' 100vw" width="640" height="360" alt="{self.words(2, 6)}">'
        )

    def icon(self):
        points = " ".join(str(self.random.randrange(240) / 10) for _ in range(24))
        return f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M{points}z"/></svg>'

    def menu(self, name, entries):
        inside = "".join(
            f'<li class="{name}__item menu-item menu-item-{at}">{self.link(1, 3, name + "__link")}'
            + (f"<ul class='sub-menu'><li>{self.link()}<li>{self.link()}</ul>" if at % 4 == 0 else "")
            + "</li>\n"
            for at in range(entries)
        )
        return f'<nav class="{name}" role="navigation"><ul>{inside}</ul></nav>'

    def card(self, name):
        return (
            f'<div class="{name} card grid-col-4"><div class="card__inner"><div class="card__media">'
            f'{self.image()}</div><div class="card__body"><h3 class="card__title">{self.link(4, 9)}'
            f'</h3><p class="card__text">{self.sentence()}</p><span class="card__meta">{self.icon()}'
            f"<time>2026-0{self.random.randint(1, 9)}-1{self.random.randrange(9)}</time></span>"
            f"</div></div></div>\n"
        )

    def post(self):
        return (
            f'<div class="post" id="p{self.random.randrange(10**7)}"><div class="post-author">'
            f'{self.link(1, 2, "username")}<br>{self.icon()}</div><div class="post-content">'
            f"{self.paragraph()}{self.paragraph()}</div><div class='post-actions'>"
            f"{self.link()}{self.link()}</div></div>\n"
        )

    def script(self, size):
        values = {f"key{at}": self.random.getrandbits(64) for at in range(size // 32)}
        return f"<script>window.__state = {json.dumps(values)};</script>\n"

    def style(self, size):
        rules = "".join(
            f".css-{self.random.getrandbits(24):06x}>.item{{margin:{at % 9}px;color:#{at % 4096:03x}}}\n"
            for at in range(size // 44)
        )
        return f"<style>{rules}</style>\n"

    def head(self, title):
        metas = "".join(
            f'<meta property="{name}" content="{self.words(4, 12)}">\n'
            for name in ("og:site_name", "og:description", "twitter:description", "description")
        )
        data = {"@context": "https://schema.org", "@type": "Article", "headline": title,
                "datePublished": "2026-03-14", "author": {"@type": "Person", "name": "A. Writer"}}  # fmt: skip
        return (
            f'<!DOCTYPE html>\n<html lang="{"zh" if self.chinese else "en"}"><head><meta charset="utf-8">'
            f"<title>{title} | Site</title>\n{metas}<link rel='canonical' href='{self.address}'>"
            f'<script type="application/ld+json">{json.dumps(data)}</script>\n'
            f"{self.style(14_000)}{self.script(12_000)}</head>\n"
        )

    def page(self, kind):
        title = self.words(5, 9)
        if kind == "article":
            parts = [self.paragraph() for _ in range(self.random.randint(10, 30))]
            parts[3] += f"<h2>{self.words(2, 6)}</h2><figure>{self.image()}</figure>"
            main = f'<article class="article"><div class="article-body">{"".join(parts)}</div></article>'
        elif kind == "listing":
            main = "".join(self.card("listing-item") for _ in range(self.random.randint(20, 36)))
        else:
            main = "".join(self.post() for _ in range(self.random.randint(10, 25)))
        side = "".join(self.card("related-posts") for _ in range(self.random.randint(8, 16)))
        return (
            f'{self.head(title)}<body class="page {kind}"><header class="site-header">{self.icon() * 4}'
            f"{self.menu('main-nav', 32)}</header>\n<div class='container'><main id='content'><h1>{title}"
            f"</h1>\n{main}</main>\n<aside class='sidebar'>{side}{self.menu('tags', 24)}</aside></div>\n"
            f"<footer class='footer'>{self.menu('footer-nav', 40)}<p>{self.sentence()}</p></footer>\n"
            f"{self.script(16_000)}<!-- {self.words(9, 40)} --></body></html>\n"
        )


def pages(count):
    """So many pages with their addresses, always the same."""
    for seed in range(count):
        maker = Maker(seed)
        yield maker.address, maker.page(("article", "listing", "thread")[seed % 3])
